"""What blocks P2P between two GPUs that PCIe joins: IOMMU translation, or ACS of a port between them."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.precondition import AS_ROOT
from dgxcheck.checks.host.virtual_machines import hypervisor
from dgxcheck.checks.pcie.acs import disable_acs, redirecting_ports
from dgxcheck.checks.pcie.iommu import disable_translation, group_type, passes_through
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.classes import NEAR
from dgxcheck.topology.model import Device

DISABLE_BOTH = (
    "disable IOMMU translation, then ACS of the ports between them, neither of the two where virtual machines run"
)
DRIVER_KEYS = (
    "check the driver's registry keys (RegistryDwords in /proc/driver/nvidia/params and /etc/modprobe.d), then reload"
    " the driver"
)


class Blocker(Record, kw_only=False):
    """The setting that blocks a pair, and its remedy."""

    setting: str
    """``IOMMU translation``, ``ACS of 0000:09:08.0``; empty where none is visible."""
    remedy: str


def blocker(box: Box, a: Device, b: Device) -> Blocker:
    """The IOMMU comes first: while groups translate, the kernel needs the ACS redirection that it enabled.

    No command is given where virtual machines run, which rely on this isolation; a guest cannot see its host's
    settings. ACS does not block GPUs further apart than PCIe switches: their traffic passes the host bridge anyway.
    """
    if (vm := guest(box)) is not None:
        return Blocker("", f"check ACS and the IOMMU on the host, which {vm} hides from its guests; else {DRIVER_KEYS}")
    types = (group_type(box, a.bdf), group_type(box, b.bdf))
    translates = any(isinstance(type_, str) and not passes_through(type_) for type_ in types)
    ports = redirecting_ports(box, a, b) if box.topology.link(a, b).pci in NEAR else []
    if translates:
        setting = "IOMMU translation"
    elif isinstance(ports, Missing):
        return _ports_unknown(ports)
    elif ports:
        setting = f"ACS of {', '.join(ports)}"
    else:
        return Blocker("", f"neither ACS nor an IOMMU blocks them: {DRIVER_KEYS}")
    if reason := hypervisor(box):
        advice = "assign the two GPUs to different virtual machines or to none"
        return Blocker(setting, f"leave {setting} enabled, virtual machines need it ({reason}); {advice}")
    if translates:
        return Blocker(setting, f"{disable_translation(box)}; then run dgxcheck again, ACS may still be enabled")
    return Blocker(setting, disable_acs(box, *(() if isinstance(ports, Missing) else ports)))


def _ports_unknown(gap: Missing) -> Blocker:
    if gap.gap is Gap.DENIED:
        return Blocker("", f"to check ACS {AS_ROOT}; if ACS is not the reason, {DRIVER_KEYS}")
    return Blocker("", f"check ACS of the ports between them (lspci -vvv, ACSCtl); then {DRIVER_KEYS}")
