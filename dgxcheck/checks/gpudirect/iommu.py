"""GPUDirect RDMA: an IOMMU that translates between GPU and HCA."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.checks.engine.blame import host
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.precondition import Precondition, undetermined
from dgxcheck.checks.gpudirect.preconditions import no_rdma, rdma_configured
from dgxcheck.checks.host.virtual_machines import hypervisor, in_guest
from dgxcheck.checks.network.hcas import nics
from dgxcheck.checks.pcie.iommu import (
    BOOT_WITH_PASS_THROUGH,
    PASS_THROUGH,
    disable_translation,
    group_type,
    passes_through,
)
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Iommu
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]


def iommu(box: Box, devices: list[Device]) -> Precondition:
    """Are the DMA addresses of any of these devices translated? Of a pair, or of all GPUs and HCAs."""
    if (hidden := in_guest(box)) is not None:
        return hidden
    types = {device: group_type(box, device.bdf) for device in devices}
    translated = {device: type_ for device, type_ in types.items() if isinstance(type_, str)}
    translated = {device: type_ for device, type_ in translated.items() if not passes_through(type_)}
    if translated:
        return _translation(box, translated)
    gap = next((type_ for type_ in types.values() if isinstance(type_, Missing)), None)
    if gap is not None:
        return _unknown_type(gap)
    pass_through = PASS_THROUGH in types.values()
    units = box.snapshot.iommu.units if isinstance(box.snapshot.iommu, Iommu) else ()
    if isinstance(units, Missing) and units.gap is not Gap.ABSENT and not pass_through:
        return undetermined(units)
    message = "the IOMMU passes their addresses through" if pass_through else "no IOMMU translates their addresses"
    evidence = Evidence("/sys/class/iommu", "absent" if isinstance(units, Missing) else [*units])
    return Precondition("ready", Judgement(Status.PASS, message, evidence=(evidence,)))


def _translation(box: Box, translated: Mapping[Device, str]) -> Precondition:
    types = ", ".join(sorted({*translated.values()}))
    summary = f"an IOMMU translates addresses (group type {types})"
    message = f"{summary} of {', '.join(device.name for device in translated)}"
    evidence = tuple(Evidence(f"iommu_group/type of {device.bdf}", type_) for device, type_ in translated.items())[:10]
    if reason := hypervisor(box):
        needed = f"virtual machines need this: {reason}"
        return Precondition("no", skip("not-configured", f"{message}; {needed}", *evidence), f"{summary}; {needed}")
    if not rdma_configured(box):
        return Precondition("no", skip("not-configured", message, *evidence), summary)
    remedy = disable_translation(box)
    return Precondition("no", Judgement(
        Status.WARN, message, types, PASS_THROUGH, evidence=evidence, remedy=remedy, fault=Fault.IOMMU
    ), summary)  # fmt: skip


def _unknown_type(gap: Missing) -> Precondition:
    if gap.gap is Gap.ABSENT:
        message = "an IOMMU is enabled, iommu=pt is not set, and this kernel does not report whether it translates"
        return Precondition("?", skip("not-supported", message, Evidence(gap.where, gap.reason)))
    return undetermined(gap)


def _iommu(box: Box) -> Judged:
    yield HOST, no_rdma(box) or iommu(box, [*box.gpus, *nics(box)]).judgement


CHECKS = (
    Check(
        id="gdr.iommu",
        rule="Warns if the IOMMU group of a GPU or HCA translates (type DMA or DMA-FQ) and a peer memory module is"
        " loaded. Where virtual machines run, translation is required and not judged; in a guest it is not visible.",
        source="type of /sys/kernel/iommu_groups/*, the kernel command line;"
        " https://docs.nvidia.com/cuda/gpudirect-rdma on IOMMUs",
        remedy=BOOT_WITH_PASS_THROUGH,
        judge=_iommu,
        blames=host("IOMMU setting"),
    ),
)
