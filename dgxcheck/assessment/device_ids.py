"""Which device a user means: an index, a name, a bus id in any spelling, a UUID."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.missing import BadInput
from dgxcheck.topology.model import Device, Topology


def gpus(topology: Topology, ids: str) -> list[Device]:
    """The GPUs of a comma-separated list; BadInput for an id that no GPU has."""
    return [_one(topology, topology.gpus, word.strip(), "GPU") for word in ids.split(",")]


def devices(topology: Topology, ids: Iterable[str]) -> list[Device]:
    """GPUs and NICs, the latter also as ``NICn``; BadInput for an id that no device has."""
    return [_one(topology, topology.devices, word.strip(), "device") for word in ids]


def _one(topology: Topology, devices: Sequence[Device], word: str, kind: str) -> Device:
    wanted = as_bdf(word, short=True)
    index = f"GPU{int(word)}" if word.isdecimal() and len(word) < 10 else None
    for found in devices:
        if word.lower() == found.name.lower() or found.name == index:
            return found
        if isinstance(found.uuid, str) and word.lower() == found.uuid.lower():
            return found
        if wanted is not None and found.bdf is not None and found.bdf == wanted:
            return found
    nics = [device for device in topology.devices if device.kind == "nic"]
    for number, nic in enumerate(nics):
        if word.lower() == f"nic{number}" and nic in devices:
            return nic
    for lost in topology.gaps:
        if word.isdecimal() and lost.where == f"nvmlDeviceGetHandleByIndex {int(word[:9])}":
            raise BadInput(f"GPU {word} cannot be accessed: {lost}; 'dgxcheck topo' shows what is known about it")
    known = ", ".join(f"{found.name} ({found.bdf})" if found.bdf else found.name for found in devices)
    hint = f"give the index, name, bus id or UUID of one of {known}" if known else f"the machine has no {kind}s"
    raise BadInput(f"no {kind} {word!r}; {hint}")
