"""What stops two GPUs that PCIe joins from reaching each other: the IOMMU, or ACS of a port between them."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.host.virtual_machines import hypervisor
from dgxcheck.checks.pcie.acs import lifted, redirecting
from dgxcheck.checks.pcie.iommu import group_type, through
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.classes import NEAR
from dgxcheck.topology.model import Device

UNSEEN = "look at the driver's registry keys, then reload the driver"
_PASS_THROUGH = (
    "boot with iommu=pt, or switch VT-d or AMD-Vi off in the firmware, which takes a reboot and leaves the host's"
    " memory open to its devices; then look again, for ACS may be left"
)


class Stopped(Record, kw_only=False):
    """The setting, and what lifts it."""

    by: str
    """In words; empty where no setting is to be seen."""
    remedy: str


def stopped(box: Box, a: Device, b: Device) -> Stopped:
    """The IOMMU goes first: while groups translate, the kernel needs the redirection that it has switched on.

    No command is given where virtual machines run: they would lose what keeps their devices apart. In one nobody can
    tell. Of GPUs further apart than one switch, ACS stops nothing: what they send goes up to the host bridge anyway.
    """
    if (vm := guest(box)) is not None:
        return Stopped("", f"{vm} decides about ACS and the IOMMU and hides both: look at its host; else {UNSEEN}")
    kinds = {kind for kind in (group_type(box, a.bdf), group_type(box, b.bdf)) if isinstance(kind, str)}
    translates = any(not through(kind) for kind in kinds)
    ports = redirecting(box, a, b) if box.topology.link(a, b).pci in NEAR else []
    named = "" if isinstance(ports, Missing) or not ports else f"ACS of {', '.join(ports)}"
    if not translates and not named:
        return _nothing_seen(ports)
    by = "an IOMMU that translates" if translates else named
    if why := hypervisor(box):
        return Stopped(by, f"leave {by} as it is: {why}; give such GPUs to different virtual machines or to none")
    if translates:
        return Stopped(by, _PASS_THROUGH)
    return Stopped(by, lifted(box, *(() if isinstance(ports, Missing) else ports)))


def _nothing_seen(ports: list[str] | Missing) -> Stopped:
    if isinstance(ports, Missing) and ports.gap is Gap.DENIED:
        return Stopped("", f"run dgxcheck as root, to see whether ACS does it; if not, {UNSEEN}")
    if isinstance(ports, Missing):
        return Stopped("", f"look at ACS of the ports between them; then {UNSEEN}")
    return Stopped("", f"neither ACS nor an IOMMU does it: {UNSEEN}")
