"""Which device of one look is which of the other: by identity where that can be compared, else by place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dgxcheck.difference.model import Pair, Side, in_container
from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
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
    """Devices by identity, then those left by bus id, then by name where a side knows no bus ids.

    A device that one side alone has is left out where the other could not have listed it.
    """
    names = [_identities(side) for side in (old, new)]
    known = [{identity for each in side.values() for identity in each.items()} for side in names]
    comparable = None
    if all(known):
        comparable = bool(known[0] & known[1]) or old.namespace == new.namespace != ""
    kept = [each if comparable else {} for each in names]
    gpus, nics = (
        tuple(pair for pair in _paired(_of(old, kind), _of(new, kind), *kept) if _sure(pair, old, new, kind))
        for kind in ("gpu", "nic")
    )
    return Matched(gpus=gpus, nics=nics, comparable=comparable)


def _of(side: Side, kind: str) -> list[Device]:
    return [device for device in side.topology.devices if device.kind == kind]


def _sure(pair: Pair, old: Side, new: Side, kind: str) -> bool:
    """Is the device on both sides, or could the side that lacks it have told of it?"""
    return (pair.old is not None or _lists(old, kind)) and (pair.new is not None or _lists(new, kind))


def _lists(side: Side, kind: str) -> bool:
    """Can this side tell which devices of a kind there are?"""
    facts = side.snapshot
    if kind == "gpu":
        return not isinstance(facts.pci, Missing) or isinstance(facts.gpu, Nvml)
    if not isinstance(facts.infiniband, Missing):
        return True
    return facts.infiniband.gap is Gap.ABSENT and not in_container(side)


KINDS = ("guid", "uuid", "serial")
"""Of identities; the serial number is that of a board, and stands for a GPU where a side has no UUID."""
Identities = Mapping[str, Mapping[str, str]]
"""By the name of the device, then by kind."""


def _identities(side: Side) -> Identities:
    """UUID and serial number of GPUs, GUID of HCAs; one that two devices have is none."""
    nvml, hcas = side.snapshot.gpu, side.snapshot.infiniband
    serials = {gpu.bdf: gpu.serial for gpu in nvml.gpus} if isinstance(nvml, Nvml) else {}
    guids = {} if isinstance(hcas, Missing) else {hca.name: hca.node_guid for hca in hcas}
    found: dict[str, dict[str, str]] = {}
    for device in side.topology.devices:
        gpu = device.kind == "gpu"
        said = {"uuid": device.uuid, "serial": serials.get(device.bdf or "")} if gpu else {
            "guid": guids.get(device.name)
        }  # fmt: skip
        found[device.name] = {kind: side.pseudonym(each.strip()) for kind, each in said.items()
                              if isinstance(each, str) and each.strip(" \n0:")}  # fmt: skip
    seen = Counter(identity for each in found.values() for identity in each.items())
    return {name: {kind: identity for kind, identity in each.items() if seen[kind, identity] == 1}
            for name, each in found.items()}  # fmt: skip


def _paired(old: Sequence[Device], new: Sequence[Device], old_ids: Identities, new_ids: Identities) -> tuple[Pair, ...]:
    """In the order of the new side, what is gone at its end."""

    def one(before: Device, after: Device) -> bool | None:
        return _one(old_ids.get(before.name, {}), new_ids.get(after.name, {}))

    found: dict[str, Pair] = {}
    left = [*old]
    for same in (one, _same_place, _same_name):
        for device in new:
            before = None if device.name in found else next((each for each in left if same(each, device)), None)
            if before is not None:
                left.remove(before)
                found[device.name] = Pair(old=before, new=device, replaced=one(before, device) is False)
    gone = tuple(Pair(old=device, new=None) for device in left)
    return (*(found.get(device.name, Pair(old=None, new=device)) for device in new), *gone)


def _one(old: Mapping[str, str], new: Mapping[str, str]) -> bool | None:
    """Are these one device, by the first kind of identity that both have? None where they have none in common."""
    return next((old[kind] == new[kind] for kind in KINDS if kind in old and kind in new), None)


def _same_place(old: Device, new: Device) -> bool:
    return old.bdf is not None and old.bdf == new.bdf


def _same_name(old: Device, new: Device) -> bool:
    """Of what other tools printed, bus ids may not be known."""
    return (old.bdf is None or new.bdf is None) and old.name == new.name
