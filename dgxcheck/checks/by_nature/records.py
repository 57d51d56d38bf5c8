"""Every record of a snapshot that is of a device or of the host, whichever field holds it: a new one is found by
itself."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.finding import Subject
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nature import Fact, rows_of
from dgxcheck.facts.record import Record, fields, replace
from dgxcheck.survey import Snapshot

NO_DEVICES = ("pci_names", "kernel_log", "measurement", "stated", "tool_reports")
"""Fields of the snapshot that hold events, figures and what other tools printed."""


Owned = tuple[tuple[str, ...], Record]
"""A record with the keys that say of which device it is, empty for the host."""


def records(facts: Snapshot) -> Iterator[Owned]:
    """Those of the fields, and those in the tuples that they hold; a record in a field is part of its holder."""
    for name in [name for name in fields(facts) if name not in NO_DEVICES]:
        yield from held(getattr(facts, name))


def held(value: object, above: tuple[str, ...] = ()) -> Iterator[Owned]:
    """The same of one field. A BAR has a number of its own and the keys of the device that has it."""
    if isinstance(value, tuple):
        for each in value:
            yield from held(each, above)
    elif isinstance(value, Record) and not isinstance(value, Missing):
        own = _keys(value)
        own = own if set(above) <= {*own} else (*above, *own)
        yield own, value
        for name, row in rows_of(type(value)).items():
            if row.nature == "holder" and isinstance(inside := getattr(value, name), tuple):
                yield from held(inside, own)


def is_inside(row: Fact) -> bool:
    """Is it a record that is part of its holder? Those of a tuple are records of their own."""
    return row.nature == "holder" and not row.record.__annotations__[row.name].startswith("tuple")


def _keys(record: Record) -> tuple[str, ...]:
    return tuple(str(getattr(record, row.name)) for row in rows_of(type(record)).values() if row.nature == "key")


def subject(box: Box, keys: tuple[str, ...], record: Record) -> Subject:
    """The GPU, adapter or PCI function that a record is of; else the host, with the keys as its part."""
    bdf = getattr(record, "bdf", next((key for key in keys if key in box.topology.functions), None))
    device = box.topology.device(bdf) if isinstance(bdf, str) else None
    if device is not None and device.kind == "gpu":
        return box.subject(device)
    if device is not None:
        return Subject(kind="hca", name=device.name, bdf=device.bdf)
    if isinstance(bdf, str):
        return Subject(kind="pci", name=bdf, bdf=bdf)
    return replace(HOST, part=" ".join(keys))
