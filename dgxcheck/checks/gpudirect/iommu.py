"""GPUDirect RDMA: does an IOMMU translate between GPU and HCA?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.precondition import Said, unsaid
from dgxcheck.checks.gpudirect.preconditions import no_rdma, wanted
from dgxcheck.checks.host.virtual_machines import hypervisor, in_guest
from dgxcheck.checks.network.hcas import nics
from dgxcheck.checks.pcie.iommu import PASS_THROUGH, group_type
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Iommu
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]


def iommu(box: Box, devices: list[Device]) -> Said:
    """These devices, all of them: a pair, or the box's."""
    if (hidden := in_guest(box)) is not None:
        return hidden
    found = {each: group_type(box, each.bdf) for each in devices}
    told = {each: said for each, said in found.items() if isinstance(said, str) and said != PASS_THROUGH}
    if told:
        return _of(box, told)
    for said in found.values():
        if isinstance(said, Missing):
            return _unknown(said)
    passes = any(said == PASS_THROUGH for said in found.values())
    units = box.snapshot.iommu.units if isinstance(box.snapshot.iommu, Iommu) else ()
    if isinstance(units, Missing) and units.gap is not Gap.ABSENT and not passes:
        return unsaid(units)
    message = "an IOMMU passes their addresses through" if passes else "no IOMMU translates for them"
    evidence = Evidence("/sys/class/iommu", "absent" if isinstance(units, Missing) else [*units])
    return Said("ready", Judgement(Status.PASS, message, evidence=(evidence,)))


def _of(box: Box, told: dict[Device, str]) -> Said:
    kinds = ", ".join(sorted({*told.values()}))
    short = f"an IOMMU translates (group type {kinds})"
    message = f"{short} for {', '.join(each.name for each in told)}"
    evidence = tuple(Evidence(f"iommu_group/type of {each.bdf}", said) for each, said in told.items())[:10]
    if why := hypervisor(box):
        needed = f"virtual machines need that: {why}"
        return Said("no", skip("not-configured", f"{message}; {needed}", *evidence), f"{short}; {needed}")
    if not wanted(box):
        return Said("no", skip("not-configured", message, *evidence), short)
    return Said("no", Judgement(Status.WARN, message, kinds, PASS_THROUGH, evidence=evidence), short)


def _unknown(gap: Missing) -> Said:
    if gap.gap is Gap.ABSENT:
        message = "an IOMMU is on, and this kernel does not say whether it translates; iommu=pt is not given to it"
        return Said("?", skip("not-supported", message, Evidence(gap.where, gap.reason)))
    return unsaid(gap)


def _iommu(box: Box) -> Judged:
    yield HOST, no_rdma(box) or iommu(box, [*box.gpus, *nics(box)]).judgement


CHECKS = (
    Check(
        id="gdr.iommu",
        rule="Warns where the IOMMU group of a GPU or HCA translates (type DMA or DMA-FQ) and a peer-memory module is"
        " loaded. Where virtual machines run that is as it must be; in a guest nobody can tell.",
        source="type of /sys/kernel/iommu_groups/*, the kernel's command line;"
        " https://docs.nvidia.com/cuda/gpudirect-rdma on IOMMUs",
        remedy="boot with iommu=pt, or switch VT-d or AMD-Vi off in the firmware; devices are then no longer kept from"
        " the host's memory, and it takes a reboot",
        judge=_iommu,
    ),
)
