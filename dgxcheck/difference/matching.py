"""Match the devices of two snapshots: by identity where comparable, else by bus id."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from dgxcheck.difference.model import Counterparts, Side, in_container
from dgxcheck.facts.missing import Gap, Missing, rows
from dgxcheck.facts.nvml.gpu import Nvml
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device

NOT_COMPARABLE = "identities not comparable: serial numbers and UUIDs were anonymized with different site keys"


class Matched(Record):
    """GPUs and NICs of both sides."""

    gpus: tuple[Counterparts, ...]
    nics: tuple[Counterparts, ...]
    comparable: bool | None
    """Can identities be compared? None where a side has none."""

    @property
    def devices(self) -> tuple[Counterparts, ...]:
        return (*self.gpus, *self.nics)


def matched(old: Side, new: Side) -> Matched:
    """Match devices by identity, the rest by bus id, then by name where a side has no bus ids.

    A device of one side only is left out if the other side could not have listed it.
    """
    identities_by_device = [_identities(side) for side in (old, new)]
    identities = [{identity for kinds in side.values() for identity in kinds.items()} for side in identities_by_device]
    comparable = None
    if all(identities):
        comparable = bool(identities[0] & identities[1]) or old.namespace == new.namespace != ""
    usable = [kinds if comparable else {} for kinds in identities_by_device]
    gpus, nics = (
        tuple(pair for pair in _paired(_of(old, kind), _of(new, kind), *usable)
              if (pair.old or _can_list(old, kind)) and (pair.new or _can_list(new, kind)))
        for kind in ("gpu", "nic")
    )  # fmt: skip
    return Matched(gpus=gpus, nics=nics, comparable=comparable)


def _of(side: Side, kind: str) -> list[Device]:
    return [device for device in side.topology.devices if (device.kind == "gpu") == (kind == "gpu")]


def _can_list(side: Side, kind: str) -> bool:
    """Does this side list its devices of a kind?"""
    facts = side.snapshot
    if kind == "gpu":
        return not isinstance(facts.pci, Missing) or (isinstance(facts.gpu, Nvml) and not shows_some(side))
    if not isinstance(facts.infiniband, Missing):
        return True
    return facts.infiniband.gap is Gap.ABSENT and not in_container(side)


def shows_some(side: Side) -> bool:
    """Is it a text that shows fewer GPUs than it counts, or in which nvidia-smi gave up at one that it cannot open?"""
    nvml = side.snapshot.gpu
    if not isinstance(nvml, Nvml) or not isinstance(side.snapshot.pci, Missing):
        return False
    lost = sum(gap.gap is Gap.LOST for gap in nvml.lost)
    unopened = any(report.topic == "nvidia-smi-handle" for report in rows(side.snapshot.tool_reports))
    return unopened or (isinstance(nvml.count, int) and nvml.count > len(nvml.gpus) + lost)


KINDS = ("guid", "uuid", "serial")
"""Kinds of identity; a serial number is that of the board, used for a GPU where a side has no UUID."""
Identities = Mapping[str, Mapping[str, str]]
"""By the name of the device, then by kind."""


def _identities(side: Side) -> Identities:
    """UUID and serial number of GPUs, GUID of HCAs; values shared by several devices are dropped."""
    serials = {gpu.bdf: gpu.serial for gpu in side.snapshot.listed_gpus}
    guids = {hca.name: hca.node_guid for hca in rows(side.snapshot.infiniband)}
    identities: dict[str, dict[str, str]] = {}
    for device in side.topology.devices:
        gpu = device.kind == "gpu"
        raw = {"uuid": device.uuid, "serial": serials.get(device.bdf or "")} if gpu else {
            "guid": guids.get(device.name)
        }  # fmt: skip
        identities[device.name] = {kind: side.pseudonym(value.strip()) for kind, value in raw.items()
                              if isinstance(value, str) and value.strip(" \n0:")}  # fmt: skip
    counts = Counter(identity for value in identities.values() for identity in value.items())
    return {name: {kind: identity for kind, identity in value.items() if counts[kind, identity] == 1}
            for name, value in identities.items()}  # fmt: skip


def _paired(
    old: Sequence[Device], new: Sequence[Device], old_ids: Identities, new_ids: Identities
) -> tuple[Counterparts, ...]:
    """Pairs in the order of the new side, devices missing from it last."""

    def same_identity(before: Device, after: Device) -> bool | None:
        """By the first kind of identity that both have; None if they have none in common."""
        was, now = old_ids.get(before.name, {}), new_ids.get(after.name, {})
        return next((was[kind] == now[kind] for kind in KINDS if kind in was and kind in now), None)

    pairs: dict[str, Counterparts] = {}
    unmatched = [*old]
    for same in (same_identity, _same_place, _same_name):
        for device in new:
            before = None if device.name in pairs else next((other for other in unmatched if same(other, device)), None)
            if before is not None:
                unmatched.remove(before)
                replaced = same_identity(before, device) is False
                pairs[device.name] = Counterparts(old=before, new=device, replaced=replaced)
    gone = tuple(Counterparts(old=device, new=None) for device in unmatched)
    return (*(pairs.get(device.name, Counterparts(old=None, new=device)) for device in new), *gone)


def _same_place(old: Device, new: Device) -> bool:
    return old.bdf is not None and old.bdf == new.bdf


def _same_name(old: Device, new: Device) -> bool:
    """For imported outputs of other tools, which may lack bus ids."""
    return (old.bdf is None or new.bdf is None) and old.name == new.name
