"""GPUDirect RDMA: how far a GPU is from an HCA, and whether the links between carry what the port does."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.precondition import Said, unsaid
from dgxcheck.checks.gpudirect.bar1_and_port import rate_gbs
from dgxcheck.checks.gpudirect.preconditions import no_rdma
from dgxcheck.checks.network.hcas import nics
from dgxcheck.checks.pcie.width import own_hop
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.topology.classes import NEAR
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import Hop, hops_between
from dgxcheck.topology.rates import pcie_gbs

Judged = Iterator[tuple[Subject, Judgement]]
HOW_SLOW = "3.7 GB/s read and 6.1 written on a host of 2013"
"""P2P through the host bridge of an Ivy Bridge: slide deck on DL infrastructure with NVIDIA GPUs, 2016."""
_FAR = {
    "PHB": f"through a host bridge: works, slower ({HOW_SLOW}), and NCCL does not use it as it is set",
    "NODE": f"through two host bridges: works, slower ({HOW_SLOW}), and NCCL does not use it as it is set",
    "SOC": f"between NUMA nodes, mostly across sockets: slow or unreliable, no more than through a host bridge"
    f" ({HOW_SLOW}); NCCL does not use it as it is set",
}


def path(box: Box, gpu: Device, nic: Device) -> Said:
    """What lies between the two."""
    link = box.topology.link(gpu, nic)
    if link.pci is None:
        gap = Missing(Gap.ABSENT, f"{gpu.name} {nic.name}", link.pci_reason)
        return Said("?", skip("not-visible", str(gap)))
    if link.pci in NEAR:
        return Said("ready", Judgement(Status.PASS, f"{nic.name} is behind its own PCIe switches: {link.pci}"))
    return Said("slow", skip("not-supported", _FAR[link.pci]))


def link(box: Box, gpu: Device, nic: Device) -> Said:
    """The narrowest hop between the two against the rate of the port."""
    found = narrowest(box, gpu, nic)
    if isinstance(found, Missing):
        return unsaid(found)
    if found is None:
        return Said("?", skip("not-visible", "no link is visible between them, as in a virtual machine"))
    gbs, hop = found
    rate = rate_gbs(box, nic)
    port = "" if rate is None else f", the port {rate:.1f}"
    if rate is not None and gbs < rate:
        return Said("slow", Judgement(Status.PASS, f"link {hop} runs x{hop.width} and carries {gbs:.1f} GB/s{port}"))
    return Said("ready", Judgement(Status.PASS, f"link {hop} carries {gbs:.1f} GB/s{port}"))


def narrowest(box: Box, gpu: Device, nic: Device) -> tuple[float, Hop] | Missing | None:
    """GB/s of the narrowest hop between the two, as trained; None where no hop is visible."""
    hops = hops_between(gpu, nic, box.topology.functions)
    if isinstance(hops, Missing):
        return hops
    least: tuple[float, Hop] | None = None
    for hop in hops:
        gbs = _carries(hop, nic)
        if hop.unjudged:
            continue
        if isinstance(gbs, Missing):
            return gbs
        if least is None or gbs < least[0]:
            least = gbs, hop
    return least


def _carries(hop: Hop, nic: Device) -> float | Missing:
    """As trained; of a GPU's side the width alone counts, an idle GPU lowers its generation."""
    return hop.gbs if hop.device == nic.bdf else pcie_gbs(hop.max_gen, hop.width)


def _path(box: Box) -> Judged:
    if (nothing := no_rdma(box)) is not None:
        yield HOST, nothing
        return
    near = {gpu.name: [nic for nic in nics(box) if path(box, gpu, nic).state == "ready"] for gpu in box.topology.gpus}
    for gpu in box.gpus:
        yield box.subject(gpu), _nearest(box, gpu, near[gpu.name], any(near.values()))


def _nearest(box: Box, gpu: Device, near: list[Device], others: bool) -> Judgement:
    if near:
        names = ", ".join(nic.name for nic in near)
        evidence = (Evidence(f"/sys/bus/pci/devices/{gpu.bdf}", names),)
        return Judgement(Status.PASS, f"behind its own PCIe switches: {names}", evidence=evidence)
    said = [path(box, gpu, nic) for nic in nics(box)]
    unknown = next((each for each in said if each.state == "?"), None)
    if unknown is not None:
        return unknown.judgement
    if others and box.choice is None:
        evidence = (Evidence(f"/sys/bus/pci/devices/{gpu.bdf}", "none near"),)
        return Judgement(
            Status.WARN, "no HCA is behind its own PCIe switches, as for other GPUs here", evidence=evidence
        )
    told = " (see network.hca-placement)" if others else ""
    return skip("not-supported", f"no HCA is behind its own PCIe switches{told}: {said[0].words}")


def _link(box: Box) -> Judged:
    if (nothing := no_rdma(box)) is not None:
        yield HOST, nothing
        return
    for nic in nics(box):
        subject = Subject(kind="hca", name=nic.name, bdf=nic.bdf)
        hop = own_hop(box, nic.path)
        yield subject, hop if isinstance(hop, Judgement) else _own(hop, rate_gbs(box, nic))


def _own(hop: Hop, rate: float | None) -> Judgement:
    narrow, slow, gbs = hop.narrow, hop.slow, hop.gbs
    for gap in (narrow, slow, gbs):
        if isinstance(gap, Missing):
            return skip("not-visible", hop.unjudged) if hop.unjudged else unjudged(gap)
    port = "" if rate is None else f", {rate:.1f} at the port"
    message = f"link {hop} runs gen{hop.gen} x{hop.width}, {gbs:.1f} GB/s{port}"
    evidence = (
        Evidence(
            f"/sys/bus/pci/devices/{hop.device}/current_link_width", hop.width if isinstance(hop.width, int) else ""
        ),
        Evidence(f"/sys/bus/pci/devices/{hop.device}/current_link_speed", hop.gen if isinstance(hop.gen, int) else ""),
    )
    if narrow is True or slow is True:
        message += f"; both ends can do gen{hop.max_gen} x{hop.max_width}"
        return Judgement(Status.WARN, message, _number(hop.gbs), _number(hop.max_gbs), "GB/s", evidence)
    return Judgement(Status.PASS, message, _number(hop.gbs), unit="GB/s", evidence=evidence)


def _number(value: float | Missing) -> float | None:
    return None if isinstance(value, Missing) else round(value, 2)


CHECKS = (
    Check(
        id="gdr.path",
        rule="Passes for a GPU with an HCA behind its own PCIe switches (PIX, PXB). Warns without a reference machine"
        " where other GPUs have one and this has none; with one that is network.hca-placement's. A box on which no GPU"
        " has one is built so, and is not judged.",
        source="the PCI tree; https://docs.nvidia.com/cuda/gpudirect-rdma on supported systems; NCCL's default of"
        " NCCL_NET_GDR_LEVEL",
        remedy="move the HCA to a slot behind the GPU's switch",
        judge=_path,
    ),
    Check(
        id="gdr.link",
        rule="Warns where an HCA's own PCIe link runs on fewer lanes, or at a lower generation, than both its ends can:"
        " unlike a GPU's it does not slow down when idle.",
        source="current_link_* against max_link_* of both ends",
        remedy="power off and reseat the HCA or its riser; then look at the slot's settings in the firmware",
        judge=_link,
    ),
)
