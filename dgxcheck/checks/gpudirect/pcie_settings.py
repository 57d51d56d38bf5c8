"""GPUDirect RDMA: settings of PCIe at its ends: MaxPayload, also of the ports between them, the MaxReadReq of HCAs,
IOMMU groups, and address translation by adapters (ATS)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, host_if_all, part, remedy_of, ruled
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, counted, first_of, judged, skip, unless
from dgxcheck.checks.engine.precondition import Precondition, in_guest, needs_facts
from dgxcheck.checks.gpudirect.preconditions import near_pairs, not_judged, of_host, rdma_configured
from dgxcheck.checks.pcie.acs_rules import needless_ats, pairing
from dgxcheck.checks.pcie.isolation import config_space_of
from dgxcheck.checks.siblings.compare import Odd, compared
from dgxcheck.components.component import host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, NeededFact, need
from dgxcheck.facts.pci import Express, IommuGroup
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.facts.typical import unlike_most
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import shared_bridges

Sizes = Mapping[str, int]
"""MaxPayload in bytes by bdf."""


def _sizes(box: Box, gpu: Device, nic: Device) -> Sizes:
    """Of both devices and every port between them."""
    above, beside = need(gpu.path), need(nic.path)
    top = max(shared_bridges(above, beside), 1)
    bdfs = dict.fromkeys((*above[top:], *beside[top:]))
    return {bdf: need(need(need(config_space_of(box, bdf)).express).max_payload) for bdf in bdfs}


def _sizes_or_none(box: Box, gpu: Device, nic: Device) -> Sizes | None:
    try:
        return _sizes(box, gpu, nic)
    except NeededFact:
        return None


@needs_facts
def payload(box: Box, gpu: Device, nic: Device) -> Precondition:
    """Is MaxPayload the same along the path of the pair?"""
    if (hidden := in_guest(box)) is not None:
        return hidden
    usual, different = unlike_most(_sizes(box, gpu, nic))
    if not different:
        return Precondition("ready", Judgement(Status.PASS, f"MaxPayload is {usual} bytes along the path"))
    sizes = ", ".join(f"{size} bytes at {bdf}" for bdf, size in different.items())
    message = f"MaxPayload is {sizes}, {usual} bytes along the rest of the path: larger packets are dropped"
    return Precondition("no", Judgement(Status.WARN, message, fault=Fault.MAX_PAYLOAD))


def _payload(box: Box) -> Judged:
    """Warns if a GPU, an HCA near it, or a port between them has another MaxPayload than the rest of the path: larger
    packets are dropped there as malformed. Undetermined without root.

    Source: Device Control of the PCI Express capability in /sys/bus/pci/devices/*/config
    """
    pairs = near_pairs(box)
    unless(not_judged(box, pairs))
    paths = [sizes for pair in pairs if (sizes := _sizes_or_none(box, *pair)) is not None]
    unless(None if paths else payload(box, *pairs[0]).judgement)
    judgements: dict[str, Judgement] = {}
    for sizes in paths:
        usual, different = unlike_most(sizes)
        for bdf, size in different.items():
            evidence = (Evidence(pci_file(bdf, "config"), f"MaxPayload {size}"),)
            message = f"MaxPayload {size} bytes, {usual} bytes along its path"
            judgements[bdf] = Judgement(Status.WARN, message, size, usual, "bytes", evidence, fault=Fault.MAX_PAYLOAD)
    yield from ((box.subject_at(bdf), judgement) for bdf, judgement in judgements.items())
    if not judgements:
        some = f"{len(paths)} of {len(pairs)} pairs"
        read = some if len(paths) < len(pairs) else counted(len(paths), "pair")
        message = f"MaxPayload is the same along the path of {read} of GPU and HCA"
        yield HOST, Judgement(Status.PASS, message, evidence=(Evidence("/sys/bus/pci/devices/*/config", "equal"),))


def _read_requests(box: Box) -> Judged:
    """Warns if the MaxReadReq of an HCA is below that of most other HCAs of its model, or below {gdr.read-request}:
    reads of GPU memory are split into small requests. Undetermined without root.

    Source: Device Control of the PCI Express capability in /sys/bus/pci/devices/*/config
    """
    unless(not_judged(box, True))
    odd = compared(box, ["hca"], Express.max_read_request).odd
    for nic in box.topology.adapters:
        at = box.subject(nic)
        yield at, ruled(_read_request, box, nic, next(iter(odd.get(at, ())), None))


def _read_request(box: Box, nic: Device, among: Odd | None) -> Judgement:
    size = need(need(need(config_space_of(box, nic.bdf or "")).express).max_read_request)
    evidence = (Evidence(pci_file(nic.bdf, "config"), f"MaxReadReq {size}"),)
    least = box.settings.limit("gdr.read-request")
    usual = among.usual if among is not None and among.majority and isinstance(among.usual, int) else 0
    message, required = f"MaxReadReq {size} bytes", least
    if size < usual:
        message, required = f"{message}, {usual} bytes in the others; HCAs of one model", usual
    elif size < least:
        message += f", at least {least:g} expected"
    return judged(Fault.READ_REQUEST, message, size, required, "bytes", evidence, warns=size < required)


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
    remedy = remedy_of("gdr.iommu-groups", "ATS").format(" ".join(translating))
    evidence = tuple(Evidence(pci_file(bdf, "config"), "ATS capability") for bdf in translating)
    judgement = Judgement(Status.WARN, message, evidence=evidence, remedy=remedy, fault=Fault.ATS)
    return Precondition("no", judgement if rdma_configured(box) else skip("not-configured", message, *evidence))


CHECKS = (
    Check("gdr.iommu-groups", of_host(needs_facts(_iommu_groups)),
        lambda box, at, judgement: (host_part(f"{'ATS' if judgement.fault is Fault.ATS else 'ACS'} setting"),)),
    Check("gdr.max-payload", _payload, part("MaxPayload"), host_if_all("MaxPayload setting")),
    Check("gdr.read-request", _read_requests, part("MaxReadReq"), host_if_all("MaxReadReq setting")),
)  # fmt: skip
