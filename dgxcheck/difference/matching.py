"""Which device of one look is which of the other: by identity where that can be compared, else by place."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.difference.model import Pair, Side
from dgxcheck.facts.gpu import Nvml
from dgxcheck.frozen import Record
from dgxcheck.reading import Missing
from dgxcheck.topology.model import Device

NOT_COMPARABLE = "identity not comparable: serial numbers and UUIDs were replaced under different site keys"


class Matched(Record):
    """GPUs and NICs of both sides."""

    gpus: tuple[Pair, ...]
    nics: tuple[Pair, ...]
    comparable: bool | None
    """Can identities be compared? None where a side has none."""

    @property
    def devices(self) -> tuple[Pair, ...]:
        return (*self.gpus, *self.nics)


def matched(old: Side, new: Side) -> Matched:
    """Devices by identity, then those left by bus id."""
    names = [_identities(side) for side in (old, new)]
    known = [frozenset(each.values()) for each in names]
    comparable = None
    if all(known):
        comparable = bool(known[0] & known[1]) or old.namespace == new.namespace != ""
    kept = [each if comparable else {} for each in names]
    gpus, nics = (_paired(_of(old, kind), _of(new, kind), *kept) for kind in ("gpu", "nic"))
    return Matched(gpus=gpus, nics=nics, comparable=comparable)


def _of(side: Side, kind: str) -> list[Device]:
    return [device for device in side.topology.devices if device.kind == kind]


def _identities(side: Side) -> dict[str, str]:
    """By the name of the device; one that two devices have is none."""
    found: dict[str, str] = {}
    nvml, hcas = side.snapshot.gpu, side.snapshot.infiniband
    serials = {gpu.bdf: gpu.serial for gpu in nvml.gpus} if isinstance(nvml, Nvml) else {}
    guids = {} if isinstance(hcas, Missing) else {hca.name: hca.node_guid for hca in hcas}
    for device in side.topology.devices:
        said = guids.get(device.name) if device.kind == "nic" else device.uuid
        if not isinstance(said, str):
            said = serials.get(device.bdf or "")
        if isinstance(said, str) and said.strip(" \n0:"):
            found[device.name] = side.pseudonym(said.strip())
    once = [*found.values()]
    return {name: identity for name, identity in found.items() if once.count(identity) == 1}


def _paired(
    old: Sequence[Device], new: Sequence[Device], old_ids: dict[str, str], new_ids: dict[str, str]
) -> tuple[Pair, ...]:
    """In the order of the new side, what is gone at its end."""
    by_identity = {old_ids[device.name]: device for device in old if device.name in old_ids}
    found: dict[str, Pair] = {}
    for device in new:
        if (before := by_identity.get(new_ids.get(device.name, ""))) is not None:
            found[device.name] = Pair(old=before, new=device)
    left = {_place(device): device for device in old if device not in [pair.old for pair in found.values()]}
    for device in new:
        if device.name in found:
            continue
        before = left.pop(_place(device), None)
        other = before is not None and before.name in old_ids and device.name in new_ids
        found[device.name] = Pair(old=before, new=device, replaced=other)
    gone = tuple(Pair(old=device, new=None) for device in left.values())
    return (*(found[device.name] for device in new), *gone)


def _place(device: Device) -> str:
    return device.bdf or device.name
