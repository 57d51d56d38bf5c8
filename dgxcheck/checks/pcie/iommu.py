"""The IOMMU: does it translate the addresses of a device?"""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.host.virtual_machines import unseen_of_virtual_machines
from dgxcheck.checks.network.hcas import nics
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.topology.model import Device

PASS_THROUGH = "identity"


def group_type(box: Box, bdf: str | None) -> str | Missing | None:
    """``DMA``, ``DMA-FQ``, ``identity``; None where no IOMMU stands before the device."""
    iommu = box.snapshot.iommu
    functions = iommu if isinstance(iommu, Missing) else iommu.functions
    if isinstance(functions, Missing):
        return functions
    nobody = Missing(Gap.UNRECORDED, f"/sys/bus/pci/devices/{bdf}/iommu_group")
    group = next((each.group for each in functions if each.bdf == bdf), nobody)
    if group is None or isinstance(group, Missing):
        return group
    if not isinstance(group.type, Missing):
        return group.type
    if group.type.gap is Gap.ABSENT and "iommu=pt" in _command_line(box):
        return PASS_THROUGH  # kernels before 5.11 have no file of the type
    return group.type


def _command_line(box: Box) -> list[str]:
    host = box.snapshot.host
    return host.cmdline.split() if isinstance(host, Host) and isinstance(host.cmdline, str) else []


def through(kind: str) -> bool:
    """Does a group of this type leave addresses as they are?"""
    return kind == PASS_THROUGH


def _translates(box: Box, device: Device) -> bool:
    found = group_type(box, device.bdf)
    return isinstance(found, str) and not through(found)


def translated(box: Box) -> list[Device]:
    """GPUs and HCAs whose addresses an IOMMU translates."""
    return [each for each in (*box.topology.gpus, *nics(box)) if _translates(box, each)]


def unsure(box: Box) -> str:
    """Why nobody can say that ACS may go: what may translate, or need it, cannot be seen. Empty where that is seen."""
    for each in (*box.topology.gpus, *nics(box)):
        found = group_type(box, each.bdf)
        if isinstance(found, Missing):
            return f"whether an IOMMU translates is not known ({found.where}: {found})"
    gap = next(unseen_of_virtual_machines(box), None)
    return f"whether virtual machines run here is not known ({gap.where}: {gap})" if gap is not None else ""
