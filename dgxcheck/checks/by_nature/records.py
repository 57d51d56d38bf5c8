"""Every record of a snapshot that is of a device or of the host, whichever field holds it: a new one is found by
itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.finding import Subject
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nature import Fact, rows_of
from dgxcheck.facts.record import Record, fields, replace
from dgxcheck.survey import Snapshot

NO_DEVICES = ("pci_names", "kernel_log", "measurement", "stated", "tool_reports")
"""Fields of the snapshot that hold events, figures and what other tools printed."""


def records(facts: Snapshot) -> Iterator[Record]:
    """Those of the fields, and those in the tuples that they hold; a record in a field is part of its holder."""
    for name in [name for name in fields(facts) if name not in NO_DEVICES]:
        yield from held(getattr(facts, name))


def held(value: object) -> Iterator[Record]:
    """The same of one field."""
    if isinstance(value, tuple):
        for each in value:
            yield from held(each)
    elif isinstance(value, Record) and not isinstance(value, Missing):
        yield value
        for name in _holders(type(value)):
            if isinstance(inside := getattr(value, name), tuple):
                yield from held(inside)


@cache
def _holders(kind: type[Record]) -> tuple[str, ...]:
    """The fields of a record that hold others."""
    return tuple(name for name, row in rows_of(kind).items() if row.nature == "holder")


def is_inside(row: Fact) -> bool:
    """Is it a record that is part of its holder? Those of a tuple are records of their own."""
    return row.nature == "holder" and not row.record.__annotations__[row.name].startswith("tuple")


def keys(record: Record) -> tuple[str, ...]:
    """Which device a record is of; empty for the host."""
    return tuple(str(getattr(record, row.name)) for row in rows_of(type(record)).values() if row.nature == "key")


def subject(box: Box, record: Record) -> Subject:
    """The GPU, adapter or PCI function that a record is of; else the host, with the keys as its part."""
    bdf = getattr(record, "bdf", None)
    device = box.topology.device(bdf) if isinstance(bdf, str) else None
    if device is not None and device.kind == "gpu":
        return box.subject(device)
    if device is not None:
        return Subject(kind="hca", name=device.name, bdf=device.bdf)
    if isinstance(bdf, str):
        return Subject(kind="pci", name=bdf, bdf=bdf)
    return replace(HOST, part=" ".join(keys(record)))
