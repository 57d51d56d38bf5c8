"""Every record of a snapshot that is of a device or of the host, whichever field holds it: a new one is found by
itself."""

from __future__ import annotations

from functools import lru_cache

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.finding import Subject
from dgxcheck.facts.record import Identity, Record, fields, replace
from dgxcheck.facts.values import held
from dgxcheck.survey import NO_DEVICES, Snapshot

Owned = tuple[tuple[str, ...], Record]
"""A record with the keys that say of which device it is, empty for the host. A BAR has those of its device too."""


def records(facts: Snapshot) -> tuple[Owned, ...]:
    """Those of the fields, and those in the tuples that they hold; a record in a field is part of its holder."""
    return _records(Identity(facts))


@lru_cache(maxsize=1)
def _records(key: Identity) -> tuple[Owned, ...]:
    listed = (getattr(key.facts, name) for name in fields(key.facts) if name not in NO_DEVICES)
    return tuple((tuple(keys.values()), record) for field in listed for keys, record in held(field))


def subject(box: Box, keys: tuple[str, ...], record: Record) -> Subject:
    """The GPU, adapter or PCI function that a record is of; else the host, with the keys as its part."""
    bdf = getattr(record, "bdf", next((key for key in keys if key in box.topology.functions), None))
    return box.subject_at(bdf) if isinstance(bdf, str) else replace(HOST, part=" ".join(keys))
