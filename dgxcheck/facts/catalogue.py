"""Every fact by its name: its label, as in messages and differences, or its address."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.facts import host, infiniband, memory, pci
from dgxcheck.facts.nature import Fact, rows_of
from dgxcheck.facts.nvml import gpu, nvlink, readings
from dgxcheck.facts.record import Record
from dgxcheck.facts.values import label


def facts() -> Iterator[Fact]:
    """Those of devices and of the host, without the keys."""
    for module in (gpu, readings, host, memory, infiniband, nvlink, pci):
        for kind in vars(module).values():
            if isinstance(kind, type) and issubclass(kind, Record) and kind.__module__ == module.__name__:
                yield from (row for row in rows_of(kind).values() if row.nature not in ("key", "holder", "event"))
    yield from map(infiniband.counter_row, infiniband.counters())


def names(row: Fact) -> tuple[str, str]:
    """``power-limit``, ``GpuPower.limit_mw``"""
    record = "IbPort.counters" if row.name in infiniband.counters() else row.record.__name__
    return label((row,)).lower().replace(" ", "-"), f"{record}.{row.name}"


def named(word: str) -> tuple[Fact, ...]:
    """The facts of a name, ``power limit`` too; several records have a memory, a link width ..."""
    wanted = word.lower().replace(" ", "-")
    return tuple(row for row in facts() if wanted in (name.lower() for name in names(row)))
