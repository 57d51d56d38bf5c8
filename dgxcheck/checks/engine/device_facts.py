"""Every fact of one device, whatever record it is in: a new probe's facts are compared without a change here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nature import rows_of
from dgxcheck.facts.record import Identity, Record, fields, values
from dgxcheck.survey import Snapshot

_OWNERS = ("bdf", "device", "name")
"""The fields by which a record says which device it is of."""
_KEYS = {"ports": "port", "supported": "memory"}
"""Sequences whose rows are compared one by one, and what tells the rows apart."""
_SCALARS = frozenset((bool, int, float, str, type(None), Missing))


def facts_of(snapshot: Snapshot, device: str, name: str = "") -> Mapping[str, object]:
    """Values and gaps of a device by their path, ``gpu_ecc.volatile_corrected.total`` or ``nvlink.3.up``.

    ``device`` is its bdf, ``name`` that in ``/sys/class``. Other sequences than those with a key are one value.
    """
    return _facts_of(Identity(snapshot), device, name)


@lru_cache(maxsize=128)  # GPUs and HCAs of a machine at three readings
def _facts_of(key: Identity, device: str, name: str) -> Mapping[str, object]:
    by_owner = _by_owner(key)
    found: dict[str, object] = {}
    for field, row in (*by_owner.get(device, ()), *(by_owner.get(name, ()) if name else ())):
        _flatten(found, field, row)
    return found


def records_of(snapshot: Identity, device: str) -> Iterator[Record]:
    """Those of one device, by its bdf or name."""
    return (record for _, record in _by_owner(snapshot).get(device, ()))


@lru_cache(maxsize=4)
def _by_owner(key: Identity) -> dict[str, list[tuple[str, Record]]]:
    """The records of each device, with the field of the snapshot that holds them."""
    found: dict[str, list[tuple[str, Record]]] = {}
    for field in fields(key.facts):
        rows = getattr(key.facts, field)
        rows = rows.gpus if isinstance(rows, Nvml) else rows
        for row in rows if isinstance(rows, tuple) else ():
            for owner in _owners(row) if isinstance(row, Record) else ():
                found.setdefault(owner, []).append((field, row))
    return found


def _owners(row: Record) -> tuple[str, ...]:
    values = (getattr(row, field) for field in _OWNERS if field in fields(row))
    return tuple(value for value in values if isinstance(value, str))


def _flatten(found: dict[str, object], path: str, fact: Any) -> None:
    """A record or mapping as a whole too: where it is missing it has one gap in place of its members."""
    found[path] = fact
    if isinstance(fact, Missing):
        return
    if isinstance(fact, Record):
        link = getattr(fact, "link", None)
        at = path if link is None else f"{path}.{link}"
        for name, value in zip(fields(fact), values(fact), strict=True):
            if type(value) in _SCALARS:
                found[f"{at}.{name}"] = value
            else:
                _flatten(found, f"{at}.{name}", value)
    elif isinstance(fact, dict):
        for name, value in fact.items():
            _flatten(found, f"{path}.{name}", value)
    elif isinstance(fact, tuple) and (key := _KEYS.get(path.rpartition(".")[2])):
        for row in fact:
            _flatten(found, f"{path}.{getattr(row, key)}", row)


_OF_STATE = frozenset(("setting", "state", "gauge", "counter", "load"))


def is_only_named(snapshot: Snapshot, device: str) -> bool:
    """Does a text tell which device there is, and nothing of how it is?"""
    unrecorded = False
    for record in records_of(Identity(snapshot), device):
        for fact in _states(record):
            if not isinstance(fact, Missing):
                return False
            unrecorded = unrecorded or fact.gap is Gap.UNRECORDED
    return unrecorded


def _states(record: Record) -> Iterator[object]:
    """What a record holds of the state of its device, gaps too."""
    for name, row in rows_of(type(record)).items():
        fact = getattr(record, name)
        for member in fact if isinstance(fact, tuple) else (fact,):
            if isinstance(member, Record):
                yield from _states(member)
            elif row.nature in _OF_STATE and member is not None:
                yield member
