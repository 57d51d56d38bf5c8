"""Every record of a snapshot that is of a device or of the host, whichever field holds it: a new one is found by
itself."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.finding import Subject
from dgxcheck.facts.record import Record, fields, replace
from dgxcheck.facts.values import held, keys_of
from dgxcheck.survey import NO_DEVICES, Snapshot


def records(facts: Snapshot) -> Iterator[Record]:
    """Those of the fields, and those in the tuples that they hold; a record in a field is part of its holder."""
    for name in [name for name in fields(facts) if name not in NO_DEVICES]:
        yield from (record for _, record in held(getattr(facts, name)))


def keys(record: Record) -> tuple[str, ...]:
    """Which device a record is of; empty for the host."""
    return tuple(keys_of(record).values())


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
