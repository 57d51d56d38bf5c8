"""Which device a user means: an index, a name, a bus id in any spelling, a UUID."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dgxcheck.facts.missing import BadInput
from dgxcheck.topology.model import Device, Topology


def gpus(topology: Topology, ids: str) -> list[Device]:
    """The GPUs of a comma-separated list; BadInput for an id that no GPU has."""
    return [_one(topology, topology.gpus, word.strip(), "GPU") for word in ids.split(",")]


def devices(topology: Topology, ids: Iterable[str]) -> list[Device]:
    """GPUs and NICs, the latter also as ``NICn``; BadInput for an id that no device has."""
    return [_one(topology, topology.devices, word.strip(), "device") for word in ids]


def _one(topology: Topology, devices: Sequence[Device], word: str, kind: str) -> Device:
    wanted = _bdf(word)
    index = f"GPU{int(word)}" if word.isdecimal() and len(word) < 10 else None
    for found in devices:
        if word.lower() == found.name.lower() or found.name == index:
            return found
        if isinstance(found.uuid, str) and word.lower() == found.uuid.lower():
            return found
        if wanted is not None and found.bdf is not None and _bdf(found.bdf) == wanted:
            return found
    nics = [device for device in topology.devices if device.kind == "nic"]
    for number, nic in enumerate(nics):
        if word.lower() == f"nic{number}" and nic in devices:
            return nic
    for lost in topology.gaps:
        if word.isdecimal() and lost.where == f"nvmlDeviceGetHandleByIndex {int(word[:9])}":
            raise BadInput(f"GPU {word} is not to be reached: {lost}; 'dgxcheck topo' shows what is known of it")
    known = ", ".join(f"{found.name} ({found.bdf})" if found.bdf else found.name for found in devices)
    hint = f"give an index, a bus id or a UUID of {known}" if known else "there is none at all"
    raise BadInput(f"no {kind} {word!r} here; {hint}")


def _bdf(word: str) -> tuple[int, int, int, int] | None:
    """Domain, bus, device, function; domain and function may be left out: ``6:0``, ``00000000:06:00.0``."""
    address, _, function = word.partition(".")
    parts = address.split(":")
    if len(parts) not in (2, 3):
        return None
    try:
        domain, bus, slot = (int(part, 16) for part in (["0", *parts] if len(parts) == 2 else parts))
        return domain, bus, slot, int(function or "0", 16)
    except ValueError:
        return None
