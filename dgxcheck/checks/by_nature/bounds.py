"""Readings that are impossible by their rows: outside of their bounds, above the field that bounds them, parts above
their whole. What was not read bounds nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from dgxcheck.checks.by_nature.records import records
from dgxcheck.checks.consistency.contradiction import Contradiction, Facts
from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.finding import Evidence
from dgxcheck.checks.siblings.kinds import rows_by_device
from dgxcheck.facts.gpu import GpuMemory, GpuPcie, RowHistogram
from dgxcheck.facts.nature import Fact, rows_of
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record
from dgxcheck.facts.values import Leaf, Rows, Value, as_json, described, label, leaves, text, where
from dgxcheck.topology.model import Device

_SAID = frozenset(("low", "high", "values", "most", "parts"))
_HOLDS = re.compile(r"(?!Missing|None|Mapping)[A-Z]")
"""The beginning of the annotation of a field that holds a record."""
_OF_LINKS = (PciFunction, GpuPcie)
"""A hypervisor shows its guest PCIe links of its own making."""


def of_gpu(box: Box, gpu: Device, _: Facts) -> Iterator[Contradiction]:
    """Of every record of one GPU."""
    for record in rows_by_device(box.snapshot).get((gpu.bdf, None), ()):
        yield from _impossible(box, record)


def of_others(box: Box) -> Iterator[Contradiction]:
    """Of every record of all other devices and of the host."""
    gpus = {gpu.bdf for gpu in box.topology.gpus}
    for _, record in records(box.snapshot):
        if getattr(record, "bdf", None) not in gpus:
            yield from _impossible(box, record)


def _impossible(box: Box, record: Record) -> Iterator[Contradiction]:
    if isinstance(record, _OF_LINKS) and guest(box) is not None:
        return
    for leaf in leaves(record, _is_bounded):
        _, of, value = leaf
        if _is_out(of, value):
            yield Contradiction(f"{described(of, value)} is impossible", (_evidence(record, of),))
        elif isinstance(value, int | float):
            yield from _above(record, leaf)
            yield from _parts(record, leaf)
    if isinstance(record, GpuMemory):
        yield from _no_banks(record)


def _is_bounded(row: Fact) -> bool:
    """Is it, or may the record be that it holds or is in?"""
    part_of_another = not row.record._where
    holds = row.nature != "load" and _HOLDS.match(row.record.__annotations__[row.name]) is not None
    return part_of_another or holds or not _SAID.isdisjoint(row.more)


def _is_out(of: Rows, value: Value) -> bool:
    low, high, values = (_own(of, what) for what in ("low", "high", "values"))
    if values is not None and value not in values:
        return True
    return isinstance(value, int | float) and (
        (low is not None and value < low) or (high is not None and value > high)
    )  # fmt: skip


def _own(of: Rows, what: str) -> Any:
    """What the innermost row that says it says."""
    return next((row.more[what] for row in reversed(of) if what in row.more), None)


def _above(record: Record, leaf: Leaf) -> Iterator[Contradiction]:
    """``most`` of an outer row names the record that bounds each value of this one."""
    _, of, value = leaf
    for level, row in enumerate(of):
        if "most" in row.more:
            bound_by = (*of[:level], rows_of(row.record)[row.more["most"]], *of[level + 1 :])
            most = _value(record, bound_by)
            if isinstance(most, int | float) and isinstance(value, int | float) and value > most:
                message = f"{described(of, value)} above {text(bound_by, most)}"
                yield Contradiction(message, (_evidence(record, of), _evidence(record, bound_by)))


def _parts(record: Record, leaf: Leaf) -> Iterator[Contradiction]:
    _, of, whole = leaf
    names = of[-1].more.get("parts", ())
    parts = [(*of[:-1], rows_of(of[-1].record)[name]) for name in names]
    values = [value for part in parts if isinstance(value := _value(record, part), int)]
    if isinstance(whole, int) and values and len(values) == len(parts) and sum(values) > whole >= max(values):
        words = f"{' and '.join(label(part) for part in parts)} {text(of, sum(values))} above {text(of, whole)}"
        yield Contradiction(words, tuple(_evidence(record, each) for each in (*parts, of)))


def _no_banks(memory: GpuMemory) -> Iterator[Contradiction]:
    """A row remapper that answers and counts no memory bank at all."""
    counts = [getattr(memory.row_histogram, name) for name in rows_of(RowHistogram)]
    if all(count == 0 for count in counts):
        of = (rows_of(GpuMemory)["row_histogram"],)
        yield Contradiction("the row remapper counts no memory bank", (Evidence(where(memory, of), 0),))


def _value(record: Record, of: Rows) -> object:
    value: Any = record
    for row in of:
        value = getattr(value, row.name, None)
    return value


def _evidence(record: Record, of: Rows) -> Evidence:
    value: Any = _value(record, of)
    return Evidence(where(record, of), as_json(value))
