"""Where a device is missing: the neighbours that have fewer beside them than in the reference machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Literal

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.component import Component
from dgxcheck.facts.missing import Missing
from dgxcheck.profiles.model import Wiring
from dgxcheck.topology.model import Device, PciClass

What = Literal["GPU", "HCA"]
_NEAREST: tuple[PciClass, ...] = ("PIX", "PXB", "PHB", "NODE", "SOC")
_BEHIND_A_SWITCH = ("PIX", "PXB")
_KINDS = {"GPU": "gpu", "HCA": "nic"}
_NOWHERE = ("", None)


def missing(box: Box, what: What) -> Component:
    """The place of it; where GPUs and HCAs are missing together from what one switch carries, the switch."""
    place = where, bdf = _place(box, what)
    if bdf is None or where.startswith("behind the switch") or place != _place(box, "HCA" if what == "GPU" else "GPU"):
        return Component(kind="slot", name=where, bdf=bdf, part=f"missing {what}")
    return Component(kind="slot", name=where, bdf=bdf, part="missing PCIe switch")


def _place(box: Box, what: What) -> tuple[str, str | None]:
    """Behind what it is missing, in words and by bus id; empty if not known.

    Found at the nearest class of which some GPUs have fewer than every wiring of the reference machine gives them; or
    of which some HCAs have no GPU, where every GPU should have an HCA.
    """
    wirings = box.choice.profile.wiring if box.choice is not None else ()
    devices = [each for each in box.topology.devices if not isinstance(each.path, Missing)]
    gpus, hcas = ([each for each in devices if each.kind == kind] for kind in _KINDS.values())
    for near in _NEAREST:
        due = min((_due(wiring, what).get(near, 0) for wiring in wirings), default=0)
        lonely = [gpu for gpu in gpus if _counted(box, gpu, what)[near] < due]
        if lonely and len(lonely) < len(gpus):
            beside = lonely if near != "SOC" else [gpu for gpu in gpus if gpu not in lonely]  # it is at the other node
            return _behind(beside, near)
        if what == "GPU" and near in _BEHIND_A_SWITCH and wirings and all(each.to_hcas.get(near) for each in wirings):
            bare = [hca for hca in hcas if not _counted(box, hca, what)[near]]
            if bare and len(bare) < len(hcas) and (found := _behind(bare, near)) != _NOWHERE:
                return found
    return _NOWHERE


def _due(wiring: Wiring, what: What) -> Mapping[PciClass, int]:
    return wiring.to_gpus if what == "GPU" else wiring.to_hcas


def _counted(box: Box, one: Device, what: What) -> Counter[PciClass]:
    others = [each for each in box.topology.devices if each.kind == _KINDS[what] and each is not one]
    return Counter(pci for each in others if (pci := box.topology.link(one, each).pci) is not None)


def _behind(lonely: list[Device], near: PciClass) -> tuple[str, str | None]:
    """The switch or host bridge that the lonely ones have in common."""
    paths = [each.path for each in lonely if not isinstance(each.path, Missing)]
    names = ", ".join(each.name for each in lonely)
    ahead = [part for part in paths[0][:-2] if all(part in path for path in paths)]
    if not ahead or (near in _BEHIND_A_SWITCH and len(ahead) < 2):
        return _NOWHERE
    if near in _BEHIND_A_SWITCH:
        return f"behind the switch of {names}", ahead[-1]
    return f"behind the host bridge of {names}", ahead[0]
