"""PCI functions that are shown beside GPUs and HCAs: disks on request, and whatever is marked."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.components.locate import is_nvswitch
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import PciFunction
from dgxcheck.output.picture.marks import Mark
from dgxcheck.topology.model import Topology

NVME = 0x0108
"""PCI class and subclass."""
_CLASSES = {
    NVME: "NVMe",
    0x0200: "Ethernet",
    0x0207: "HCA",
    0x0106: "SATA",
    0x0104: "RAID",
    0x0302: "GPU",
    0x0300: "GPU",
}


def others(topology: Topology, marks: Iterable[Mark], nvme: bool) -> tuple[str, ...]:
    """Functions beside GPUs and NICs to show: those that are marked, or that a marked link leads to, and NVMe disks."""
    marked = {at[1] for mark in marks for at in mark.at if at[0] in ("box", "link")}
    shown = {device.bdf for device in topology.devices}
    on_path = {bdf for each in topology.functions.values() if isinstance(each.path, tuple) for bdf in each.path[:-1]}
    return tuple(
        bdf
        for bdf, function in topology.functions.items()
        if bdf not in shown and bdf not in on_path and (bdf in marked or (nvme and _class(function) == NVME))
    )


def _class(function: PciFunction) -> int:
    return -1 if isinstance(function.class_code, Missing) else function.class_code >> 8


def class_name(function: PciFunction) -> str:
    """``NVMe``, ``Ethernet``"""
    return "NVSwitch" if is_nvswitch(function) else _CLASSES.get(_class(function), "PCI device")
