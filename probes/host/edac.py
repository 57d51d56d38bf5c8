"""Errors of the host's memory, by memory controller."""

from __future__ import annotations

from dgxcheck.facts.host import MemoryController
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.ask import ask
from probes.parse_scalar import decimal, is_decimal, line, natural

_EDAC = "/sys/devices/system/edac/mc"


def probe(source: Source) -> tuple[MemoryController, ...] | Missing:
    """``/sys/devices/system/edac/mc``, by number."""
    names = source.names(_EDAC)
    if isinstance(names, Missing):
        return names
    found = sorted((name for name in names if name.startswith("mc") and is_decimal(name[2:])), key=natural)
    return tuple(_memory_controller(source, name) for name in found)


def _memory_controller(source: Source, name: str) -> MemoryController:
    base = f"{_EDAC}/{name}"
    return MemoryController(
        name=name,
        mc_name=ask(source, f"{base}/mc_name", line),
        corrected=ask(source, f"{base}/ce_count", decimal),
        uncorrected=ask(source, f"{base}/ue_count", decimal),
        size_mb=ask(source, f"{base}/size_mb", decimal),
    )
