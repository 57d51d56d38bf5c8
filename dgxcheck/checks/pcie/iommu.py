"""The IOMMU: whether it translates the DMA addresses of a device."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.host.virtual_machines import hypervisor_gaps
from dgxcheck.checks.network.hcas import nics
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.topology.model import Device

PASS_THROUGH = "identity"
BOOT_WITH_PASS_THROUGH = (
    "boot with iommu=pt (Arm: iommu.passthrough=1), or disable VT-d or AMD-Vi in the firmware setup; the IOMMU then no"
    " longer protects host memory from these devices"
)


def group_type(box: Box, bdf: str | None) -> str | Missing | None:
    """The type of a device's IOMMU group: ``DMA``, ``DMA-FQ``, ``identity``; None without an IOMMU group."""
    iommu = box.snapshot.iommu
    functions = iommu if isinstance(iommu, Missing) else iommu.functions
    if isinstance(functions, Missing):
        return functions
    unrecorded = Missing(Gap.UNRECORDED, f"/sys/bus/pci/devices/{bdf}/iommu_group")
    group = next((function.group for function in functions if function.bdf == bdf), unrecorded)
    if group is None or isinstance(group, Missing):
        return group
    if isinstance(group.type, Missing) and group.type.gap is Gap.ABSENT and _boots_with_pass_through(box):
        return PASS_THROUGH  # kernels before 5.11 have no file of the type
    return group.type


def _boots_with_pass_through(box: Box) -> bool:
    host = box.snapshot.host
    return isinstance(host, Host) and isinstance(host.cmdline, str) and "iommu=pt" in host.cmdline.split()


def passes_through(type_: str) -> bool:
    """Does the IOMMU leave the addresses of a group of this type as they are?"""
    return type_ == PASS_THROUGH


def translated_devices(box: Box) -> list[Device]:
    """GPUs and HCAs whose DMA addresses an IOMMU translates."""
    types = [(device, group_type(box, device.bdf)) for device in (*box.topology.gpus, *nics(box))]
    return [device for device, type_ in types if isinstance(type_, str) and not passes_through(type_)]


def disable_translation(box: Box) -> str:
    """The remedy. The type of a single group can be changed only while no driver is bound to its devices
    (Linux Documentation/ABI/testing/sysfs-kernel-iommu_groups).
    """
    if _boots_with_pass_through(box):
        return (
            "the kernel runs with iommu=pt already, so the type of these groups alone was changed: unload the drivers"
            " of their devices, write identity to /sys/kernel/iommu_groups/N/type and load the drivers again, or reboot"
        )
    return BOOT_WITH_PASS_THROUGH


def reason_to_keep_acs(box: Box) -> str:
    """Why ACS must not be disabled yet: IOMMU or virtual machines that may need it are not known; empty if known."""
    for device in (*box.topology.gpus, *nics(box)):
        type_ = group_type(box, device.bdf)
        if isinstance(type_, Missing):
            return f"whether an IOMMU translates addresses is unknown ({type_.where}: {type_})"
    gap = next(hypervisor_gaps(box), None)
    return "" if gap is None else f"whether virtual machines run here is unknown ({gap.where}: {gap})"
