"""Errors of the host's memory, by memory controller."""

from __future__ import annotations

from dgxcheck.facts.host import MemoryController
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.sysfs import EDAC
from dgxcheck.source.protocol import Source
from probes.ask import ask, numbered
from probes.parse_scalar import decimal, line


def probe(source: Source) -> tuple[MemoryController, ...] | Missing:
    """``/sys/devices/system/edac/mc``, by number."""
    numbers = numbered(source, EDAC, "mc")
    return numbers if isinstance(numbers, Missing) else tuple(_memory_controller(source, f"mc{n}") for n in numbers)


def _memory_controller(source: Source, name: str) -> MemoryController:
    base = f"{EDAC}/{name}"
    return MemoryController(
        name=name,
        mc_name=ask(source, f"{base}/mc_name", line),
        corrected=ask(source, f"{base}/ce_count", decimal),
        uncorrected=ask(source, f"{base}/ue_count", decimal),
        size_mb=ask(source, f"{base}/size_mb", decimal),
    )
