"""GPUDirect RDMA: how far a GPU is from an HCA, and whether the PCIe links between them carry the port's rate."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.bandwidth.expected import between
from dgxcheck.bandwidth.links import as_it_is, narrowest
from dgxcheck.checks.engine.blame import host, host_if_all
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, ruled
from dgxcheck.checks.engine.expected import is_coherent
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, judged, skip, unless
from dgxcheck.checks.engine.precondition import Precondition, needs_facts
from dgxcheck.checks.gpudirect.bar1_and_port import port_gbs
from dgxcheck.checks.gpudirect.preconditions import no_rdma
from dgxcheck.checks.pcie.gpu_link import own_hop, setting_or_link, slow_fault, target_evidence
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MELLANOX
from dgxcheck.facts.missing import need
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device, PciClass
from dgxcheck.topology.paths import NEAR, Hop, hops_between, pci_class

_NCCL = "NCCL does not use it by default"
_SAME_NODE: tuple[PciClass, ...] = ("PHB", "NODE")
"""Of Grace these are NCCL's P2C (``NCCL_NET_GDR_C2C``; NVIDIA/nccl src/graph/topo.h), and what rdma_topo calls NUMA."""
_FAR: Mapping[PciClass, str] = {
    "PHB": "path through a host bridge: works, but slower",
    "NODE": "path through two host bridges: works, but slower",
    "SOC": "path between NUMA nodes, usually across sockets: slow or unreliable",
}


def path(box: Box, gpu: Device, nic: Device) -> Precondition:
    """Do the two share a PCIe switch?"""
    link = box.topology.link(gpu, nic)
    if link.pci is None:
        return Precondition("?", skip("not-visible", link.pci_reason or f"the path to {nic.name} is not known"))
    if link.pci in NEAR:
        return Precondition("ready", Judgement(Status.PASS, f"shares a PCIe switch with {nic.name} ({link.pci})"))
    near = any(box.topology.link(gpu, other).pci in NEAR for other in box.topology.adapters)
    if link.pci in _SAME_NODE and is_coherent(box) and not near:
        message = f"{nic.name} reaches its memory over C2C through their CPU, which NCCL uses by default"
        return Precondition("ready", Judgement(Status.PASS, message))
    carries = between(box, gpu, nic)
    rates = [f"{total.rate} {way}" for total, way in ((carries.read, "read"), (carries.write, "written"))]
    return Precondition("slow", skip("not-supported", f"{_FAR[link.pci]} ({', '.join(rates)}); {_NCCL}"))


_NETWORK = 2
"""Base class of a PCI function."""


@needs_facts
def link(box: Box, gpu: Device, nic: Device) -> Precondition:
    """The narrowest hop between the two against the rate of the port."""
    narrow = need(narrowest(need(hops_between(gpu, nic, box.topology.functions)), as_it_is(nic)))
    if narrow is None:
        return Precondition("?", skip("not-visible", "no link is visible between them, as in a virtual machine"))
    hop, gbs = narrow
    rate = port_gbs(box, nic)
    port = "" if rate is None else f", the port {rate:.1f} GB/s"
    if rate is not None and gbs < rate:
        message = f"link {hop} is trained at x{hop.width} and carries {gbs:.1f} GB/s{port}"
        return Precondition("slow", Judgement(Status.PASS, message))
    return Precondition("ready", Judgement(Status.PASS, f"link {hop} carries {gbs:.1f} GB/s{port}"))


def _path(box: Box) -> Judged:
    """Passes for a GPU that shares a PCIe switch with an HCA (PIX, PXB). Without a reference machine, warns if other
    GPUs do and this one does not; with one, network.hca-placement judges this. Not judged on a machine on which no GPU
    shares a switch with an HCA.

    Source: the PCI tree; https://docs.nvidia.com/cuda/gpudirect-rdma on supported systems; NCCL's default of
    NCCL_NET_GDR_LEVEL
    """
    unless(no_rdma(box))
    matrix, adapters = box.topology.matrix(), box.topology.adapters
    near = {gpu.name: [nic for nic in adapters if matrix[gpu.name, nic.name].pci in NEAR] for gpu in box.topology.gpus}
    for gpu in box.gpus:
        yield box.subject(gpu), _nearest(box, gpu, near[gpu.name], any(near.values()))


def _nearest(box: Box, gpu: Device, near: list[Device], others_have_one: bool) -> Judgement:
    where = f"/sys/bus/pci/devices/{gpu.bdf}"
    if near:
        names = ", ".join(nic.name for nic in near)
        return Judgement(Status.PASS, f"shares a PCIe switch with {names}", evidence=(Evidence(where, names),))
    paths = [path(box, gpu, nic) for nic in box.topology.adapters]
    if (unknown := next((precondition for precondition in paths if precondition.state == "?"), None)) is not None:
        return unknown.judgement
    if not others_have_one:
        return skip("not-supported", "no GPU shares a PCIe switch with an HCA")
    message = "shares no PCIe switch with an HCA, other GPUs do"
    if silent := _without_rdma_device(box, gpu):
        return skip("dependency-failed", f"the adapter {silent} on its PCIe switch has no RDMA device")
    if box.choice is not None:
        return skip("not-supported", f"{message}: see network.hca-placement")
    return Judgement(Status.WARN, message, evidence=(Evidence(where, "no HCA near"),), fault=Fault.MISPLACED)


def _without_rdma_device(box: Box, gpu: Device) -> str:
    """The bdf of a Mellanox adapter on the GPU's PCIe switch that the driver made no device of; empty without one."""
    own, listed = gpu.function, {nic.bdf for nic in box.topology.adapters}
    adapters = (
        each for bdf, each in sorted(box.topology.functions.items())
        if each.vendor == MELLANOX and isinstance(each.class_code, int) and each.class_code >> 16 == _NETWORK
        and bdf not in listed
    )  # fmt: skip
    near = (function.bdf for function in adapters if own and pci_class(own, function, box.snapshot.numa)[0] in NEAR)
    return next(near, "")


def _link(box: Box) -> Judged:
    """Warns if an HCA's own PCIe link is trained at fewer lanes or a lower generation than both its ends support;
    unlike a GPU's link it does not slow down when idle.

    Source: current_link_* against max_link_* of both ends
    """
    unless(no_rdma(box))
    for nic in box.topology.adapters:
        subject = box.subject(nic)
        hop = own_hop(box, nic.path)
        yield subject, hop if isinstance(hop, Judgement) else ruled(_trained, box, hop, port_gbs(box, nic))


def _trained(box: Box, hop: Hop, port: float | None) -> Judgement:
    """The own link of an HCA against what both its ends support; ``port`` in GB/s."""
    if hop.skip_reason:
        return skip("not-visible", hop.skip_reason)
    narrow, slow, gbs = need(hop.narrow), need(hop.slow), need(hop.gbs)
    gen, width = need(hop.gen), need(hop.width)
    at_port = "" if port is None else f", the port {port:.1f} GB/s"
    message = f"PCIe gen{gen} x{width} ({gbs:.1f} GB/s{at_port})"
    evidence = (
        Evidence(pci_file(hop.device, "current_link_width"), width),
        Evidence(pci_file(hop.device, "current_link_speed"), gen),
    )
    if not narrow and not slow:
        return Judgement(Status.PASS, message, round(gbs, 2), unit="GB/s", evidence=evidence)
    message += f" instead of gen{hop.max_gen} x{hop.max_width}; link {hop}"
    fault = Fault.LINK_NARROW if narrow else slow_fault(box, hop)
    if fault is Fault.LINK_LIMITED:
        message += ", limited by a setting of the port"
    figures = (round(gbs, 2), round(need(hop.max_gbs), 2), "GB/s")
    return judged(fault, message, *figures, (*evidence, *target_evidence(box, hop)), warns=True)


CHECKS = (
    Check("gdr.path", _path, host("placement of HCAs"), remedy="move the HCA to a slot below the GPU's PCIe switch"),
    Check("gdr.link", _link, setting_or_link, host_if_all("PCIe setting"),
        remedy="power off and reseat the HCA or its riser; then check the slot's settings in the firmware setup"),
)  # fmt: skip
