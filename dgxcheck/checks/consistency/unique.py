"""Identities that only one device of a machine can have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.checks.consistency.contradiction import Contradiction
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Evidence
from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.missing import Missing, rows

_BLANK = frozenset("0 :.-")
"""An identity of these characters alone was never written."""
_TWO_ON_A_BOARD = ("GB200", "GB300")
"""A Grace superchip has two GPUs and one serial number."""


def duplicates(box: Box) -> Iterator[tuple[tuple[str, ...], Contradiction]]:
    """The names of devices that share an identity, and what it is."""
    for words, function, owners in _identities(box):
        by_value: dict[str, list[str]] = {}
        for name, value in owners.items():
            if not set(value) <= _BLANK or function == "nvmlDeviceGetMinorNumber":
                by_value.setdefault(value.lower(), []).append(name)
        for value, names in by_value.items():
            if len(names) > 1:
                evidence = tuple(Evidence(f"{function} {name}", value) for name in names)
                yield tuple(names), Contradiction(f"{', '.join(names)} have the same {words}", evidence)


def are_comparable(box: Box) -> bool:
    """Are there two devices whose identities were read?"""
    return any(len(owners) > 1 for _, _, owners in _identities(box))


def _identities(box: Box) -> Iterator[tuple[str, str, Mapping[str, str]]]:
    """What is unique, where it is read, and its value by the name of the device."""
    listed = box.snapshot.gpu.gpus if isinstance(box.snapshot.gpu, Nvml) else ()
    names = {gpu.bdf: gpu.name for gpu in box.topology.gpus}
    gpus = {names[row.bdf]: row for row in listed if row.bdf in names}
    yield "UUID", "nvmlDeviceGetUUID", {name: row.uuid for name, row in gpus.items() if isinstance(row.uuid, str)}
    minors = {name: str(row.minor) for name, row in gpus.items() if isinstance(row.minor, int)}
    yield "minor number", "nvmlDeviceGetMinorNumber", minors
    yield "serial number", "nvmlDeviceGetSerial", _serials(box)
    hcas = rows(box.snapshot.infiniband)
    guids = {row.name: row.node_guid for row in hcas if isinstance(row.node_guid, str) and row.is_vf is not True}
    yield "node GUID", "/sys/class/infiniband node_guid", guids
    yield "MAC address", "/sys/class/net address", _addresses(box)


def _serials(box: Box) -> dict[str, str]:
    """Of GPUs that are alone on their board: the two of a K80 or of a Grace superchip have the same."""
    found: dict[str, str] = {}
    listed = box.snapshot.gpu.gpus if isinstance(box.snapshot.gpu, Nvml) else ()
    rows = {row.bdf: row for row in listed}
    serials = [row.serial for row in rows.values() if isinstance(row.serial, str)]
    in_pairs = all(serials.count(serial) == 2 for serial in serials)
    for gpu in box.topology.gpus:
        row, board = rows.get(gpu.bdf or ""), box.gpu(gpu).board
        if row is None or not isinstance(row.serial, str) or in_pairs:
            continue
        superchip = isinstance(row.name, str) and any(word in row.name for word in _TWO_ON_A_BOARD)
        if not superchip and (isinstance(board, Missing) or board.multi_gpu is not True):
            found[gpu.name] = row.serial
    return found


def _addresses(box: Box) -> dict[str, str]:
    """Of interfaces with a PCI function; those that a bond or bridge has joined have its address."""
    listed = rows(box.snapshot.network)
    joined = {row.mac for row in listed if isinstance(row.bdf, Missing)}
    own = (row for row in listed if not isinstance(row.bdf, Missing))
    return {row.name: row.mac for row in own if isinstance(row.mac, str) and row.mac not in joined}
