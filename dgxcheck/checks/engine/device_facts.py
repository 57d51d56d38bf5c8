"""Every fact of one device, whatever record it is in: a new probe's facts are compared without a change here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record, fields
from dgxcheck.survey import Snapshot

_NAMES = ("bdf", "device", "name")
"""The field by which a record says which device it is of."""
_OF_PORTS = "ports"


def facts_of(snapshot: Snapshot, device: str, name: str = "") -> dict[str, object]:
    """Values and gaps of a device by their path, ``gpu_ecc.volatile_corrected.total`` or ``nvlink.3.up``.

    ``device`` is its bdf, ``name`` that in ``/sys/class``. Sequences of anything but records are one value.
    """
    found: dict[str, object] = {}
    for field in fields(snapshot):
        rows = getattr(snapshot, field)
        rows = rows.gpus if isinstance(rows, Nvml) else rows
        for row in rows if isinstance(rows, tuple) else ():
            if isinstance(row, Record) and _is_of(row, device, name):
                found.update(_flat(field, row))
    return found


def _is_of(row: Record, device: str, name: str) -> bool:
    own = [getattr(row, field) for field in _NAMES if field in fields(row)]
    return bool(own) and (device in own or (bool(name) and name in own))


def _flat(path: str, fact: Any) -> Iterator[tuple[str, object]]:
    if isinstance(fact, Record) and not isinstance(fact, Missing):
        link = getattr(fact, "link", None)
        at = path if link is None else f"{path}.{link}"
        for name in fields(fact):
            yield from _flat(f"{at}.{name}", getattr(fact, name))
    elif isinstance(fact, Mapping):
        for name, value in fact.items():
            yield from _flat(f"{path}.{name}", value)
    elif path.endswith(f".{_OF_PORTS}") and isinstance(fact, tuple):
        for port in fact:
            yield from _flat(f"{path}.{port.port}", port)
    else:
        yield path, fact
