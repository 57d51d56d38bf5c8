"""Where a device is missing: the neighbours that have fewer beside them than in the reference machine."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from dgxcheck.checks.check import Box
from dgxcheck.profiles.model import Wiring
from dgxcheck.reading import Missing
from dgxcheck.topology.model import Device, PciClass

_NEAREST: tuple[PciClass, ...] = ("PIX", "PXB", "PHB", "NODE", "SOC")


def place_of_missing(box: Box, kind: str) -> tuple[str, str | None]:
    """Behind what a device of the kind (``gpu`` or ``nic``) is missing, in words and by bus id; empty if not known.

    Found at the nearest class of which some GPUs have fewer than every wiring of the reference machine gives them.
    """
    wirings = box.choice.profile.wiring if box.choice is not None else ()
    gpus = [gpu for gpu in box.topology.gpus if not isinstance(gpu.path, Missing)]
    for near in _NEAREST:
        due = min((_due(wiring, kind).get(near, 0) for wiring in wirings), default=0)
        lonely = [gpu for gpu in gpus if _counted(box, gpu, kind)[near] < due]
        if lonely and len(lonely) < len(gpus):
            beside = lonely if near != "SOC" else [gpu for gpu in gpus if gpu not in lonely]  # it is at the other node
            return _behind(beside, near)
    return "", None


def _due(wiring: Wiring, kind: str) -> Mapping[PciClass, int]:
    return wiring.to_gpus if kind == "gpu" else wiring.to_hcas


def _counted(box: Box, gpu: Device, kind: str) -> Counter[PciClass]:
    others = [each for each in box.topology.devices if each.kind == kind and each is not gpu]
    return Counter(pci for each in others if (pci := box.topology.link(gpu, each).pci) is not None)


def _behind(lonely: list[Device], near: PciClass) -> tuple[str, str | None]:
    """The switch or host bridge that the lonely ones have in common."""
    paths = [gpu.path for gpu in lonely if not isinstance(gpu.path, Missing)]
    names = ", ".join(gpu.name for gpu in lonely)
    ahead = [part for part in paths[0][:-2] if all(part in path for path in paths)]
    if not ahead:
        return "", None
    switch = near in ("PIX", "PXB") and len(ahead) > 1
    return f"behind the {'switch' if switch else 'host bridge'} of {names}", ahead[-1] if switch else ahead[0]
