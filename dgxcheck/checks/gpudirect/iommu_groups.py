"""GPUDirect RDMA: the IOMMU groups of GPUs and adapters, and address translation by adapters (ATS)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, counted, first_of, skip
from dgxcheck.checks.engine.precondition import Precondition, in_guest, needs_facts
from dgxcheck.checks.gpudirect.preconditions import of_host, rdma_configured
from dgxcheck.checks.pcie.acs_rules import needless_ats, pairing
from dgxcheck.components.component import host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, need
from dgxcheck.facts.pci import IommuGroup
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device


def _grouped(box: Box) -> Iterator[tuple[str, str, bool]]:
    """Bus ids of a GPU and of what moves its data, and whether one group holds both, as ``rdma_topo check`` has it.

    The driver lets a GPU and its DMA function reach each other by their common group; an adapter that translates
    addresses (ATS) or has a root port of its own has its own group.
    """
    here = pairing(box)
    if here is not None and here.kind == "apart":
        ends = [nic.bdf for nic in box.topology.adapters]
        yield from ((gpu.bdf, end, False) for gpu in box.topology.gpus for end in ends if gpu.bdf and end)
    elif here is not None:
        yield from ((fork.gpu, fork.end, here.kind != "translated") for fork in here.forks)


def _group_number(box: Box, bdf: str) -> int | None:
    functions = need(need(box.snapshot.iommu).functions)
    where = pci_file(bdf, "iommu_group")
    group = need(next((each.group for each in functions if each.bdf == bdf), Missing(Gap.UNRECORDED, where)))
    return group.number if isinstance(group, IommuGroup) else None


@needs_facts
def iommu_groups(box: Box, gpu: Device, nic: Device) -> Precondition:
    """Are a GPU and what moves its data for this HCA in the groups that they need?"""
    ends = (nic.bdf, nic.dma and nic.dma.bdf)
    return _of_groups(box, [pair for pair in _grouped(box) if pair[0] == gpu.bdf and pair[1] in ends])


def _of_groups(box: Box, pairs: Sequence[tuple[str, str, bool]]) -> Precondition:
    if not pairs:
        return Precondition("ready", skip("not-supported", "no ConnectX-8 beside a GPU, and no Grace"))
    groups = {bdf: _group_number(box, bdf) for gpu, end, _ in pairs for bdf in (gpu, end)}
    if all(group is None for group in groups.values()):
        return Precondition("ready", skip("not-configured", "no IOMMU groups GPUs and adapters"))
    wrong = [(gpu, end, shared) for gpu, end, shared in pairs if (groups[gpu] == groups[end]) is not shared]
    evidence = tuple(Evidence(pci_file(bdf, "iommu_group"), group) for bdf, group in groups.items())[:10]
    if not wrong:
        message = f"{counted(len(pairs), 'pair')} in the groups that they need"
        return Precondition("ready", Judgement(Status.PASS, message, evidence=evidence))
    names = {gpu.bdf: gpu.name for gpu in box.topology.gpus}
    what = first_of([f"{names[gpu]} and {end}" for gpu, end, _ in wrong])
    found, wanted = ("different IOMMU groups", "in one") if wrong[0][2] else ("one IOMMU group", "apart")
    message = f"{what} are in {found}; GPUDirect RDMA needs them {wanted}"
    if not rdma_configured(box):
        return Precondition("no", skip("not-configured", message, *evidence))
    return Precondition("no", Judgement(Status.WARN, message, evidence=evidence, fault=Fault.ACS))


def _iommu_groups(box: Box) -> Precondition:
    """With a ConnectX-8 beside each GPU, and on Grace, warns if a GPU and its adapter or DMA function are not in the
    IOMMU groups that rdma_topo wants, or if adapters translate addresses (ATS) where it wants none, and a peer memory
    module is loaded. Groups are not judged without any.

    Source: /sys/bus/pci/devices/*/iommu_group; https://github.com/linux-rdma/rdma-core kernel-boot/rdma_topo
    """
    if (hidden := in_guest(box)) is not None:
        return hidden
    if not (translating := needless_ats(box)):
        return _of_groups(box, [*_grouped(box)])
    message = f"ATS is on at {first_of(translating)}; the GPUs here reach their adapters without it"
    remedy = (
        "switch it off at these adapters with mlxconfig, unless virtual machines use them"
        f" (for d in {' '.join(translating)}; do mlxconfig -d $d set ATS_ENABLED=0; done); it holds once they are"
        " reset; compare rdma_topo check of rdma-core"
    )
    evidence = tuple(Evidence(pci_file(bdf, "config"), "ATS capability") for bdf in translating)
    judgement = Judgement(Status.WARN, message, evidence=evidence, remedy=remedy, fault=Fault.ATS)
    return Precondition("no", judgement if rdma_configured(box) else skip("not-configured", message, *evidence))


CHECKS = (
    Check("gdr.iommu-groups", of_host(needs_facts(_iommu_groups)),
        lambda box, at, judgement: (host_part(f"{'ATS' if judgement.fault is Fault.ATS else 'ACS'} setting"),),
        remedy="compare rdma_topo check of rdma-core: the kernel makes the groups at boot, from the ACS bits that the"
        " kernel parameter pci=config_acs= or the firmware set by then; bits set later with setpci come too late"),
)  # fmt: skip
