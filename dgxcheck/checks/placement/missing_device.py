"""Where a device is missing: below the bridge whose GPUs have fewer devices near them than in the reference machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.component import Component
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.profiles.model import Wiring
from dgxcheck.topology.classes import NEAR
from dgxcheck.topology.model import PCI_CLASSES, Device, PciClass

DeviceType = Literal["GPU", "HCA"]
_KINDS = {"GPU": "gpu", "HCA": "nic"}
_OTHER: Mapping[DeviceType, DeviceType] = {"GPU": "HCA", "HCA": "GPU"}


class _Place(Record):
    """The switch or host bridge below which a device is missing."""

    bridge: str
    """Bus id of the switch's upstream port, or the root bus."""
    is_switch: bool
    neighbours: tuple[str, ...]
    """Names of the devices below it that have fewer near them."""

    @property
    def name(self) -> str:
        bridge = "switch" if self.is_switch else "host bridge"
        return f"behind the {bridge} of {', '.join(self.neighbours)}"


def missing(box: Box, what: DeviceType) -> Component:
    """The place of a missing device; the place of a switch if GPUs and HCAs are missing below one host bridge."""
    place = _place(box, what)
    if place is None:
        return Component(kind="slot", name="", part=f"missing {what}")
    both = not place.is_switch and place == _place(box, _OTHER[what])
    part = "missing PCIe switch" if both else f"missing {what}"
    return Component(kind="slot", name=place.name, bdf=place.bridge, part=part)


def _place(box: Box, what: DeviceType) -> _Place | None:
    """Where it is missing; None if not known.

    Found at the nearest class of which some GPUs have fewer than every wiring of the reference machine gives them; or
    of which some HCAs have no GPU, if every GPU should have an HCA there.
    """
    wirings = box.choice.profile.wiring if box.choice is not None else ()
    devices = [device for device in box.topology.devices if not isinstance(device.path, Missing)]
    gpus, hcas = ([device for device in devices if device.kind == kind] for kind in _KINDS.values())
    for near in PCI_CLASSES:
        expected = min((_expected(wiring, what).get(near, 0) for wiring in wirings), default=0)
        lacking = [gpu for gpu in gpus if _classes(box, gpu, what)[near] < expected]
        if lacking and len(lacking) < len(gpus):
            # what lacks a device at the other socket is not where the device is missing
            return _below(lacking if near != "SOC" else [gpu for gpu in gpus if gpu not in lacking], near)
        if what == "GPU" and near in NEAR and wirings and all(each.to_hcas.get(near) for each in wirings):
            alone = [hca for hca in hcas if not _classes(box, hca, what)[near]]
            if alone and len(alone) < len(hcas) and (place := _below(alone, near)) is not None:
                return place
    return None


def _expected(wiring: Wiring, what: DeviceType) -> Mapping[PciClass, int]:
    return wiring.to_gpus if what == "GPU" else wiring.to_hcas


def _classes(box: Box, device: Device, what: DeviceType) -> Counter[PciClass]:
    """How many devices of a type it reaches at each PCI class."""
    others = [other for other in box.topology.devices if other.kind == _KINDS[what] and other is not device]
    return Counter(pci for other in others if (pci := box.topology.link(device, other).pci) is not None)


def _below(devices: Sequence[Device], near: PciClass) -> _Place | None:
    """The switch or host bridge that the devices have in common."""
    paths = [device.path for device in devices if not isinstance(device.path, Missing)]
    common = [bridge for bridge in paths[0][:-2] if all(bridge in path for path in paths)]
    is_switch = near in NEAR
    if not common or (is_switch and len(common) < 2):
        return None
    names = tuple(device.name for device in devices)
    return _Place(bridge=common[-1] if is_switch else common[0], is_switch=is_switch, neighbours=names)
