"""GPUDirect RDMA: which pairs of GPU and HCA are judged, and why none are."""

from __future__ import annotations

from collections.abc import Callable

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Judge
from dgxcheck.checks.engine.finding import Judged, Judgement, skip
from dgxcheck.checks.engine.host_limits import loaded
from dgxcheck.checks.engine.precondition import Precondition, in_guest
from dgxcheck.checks.network.hcas import hcas, nics, none_here
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import NEAR

PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")


def of_host(precondition: Callable[[Box], Precondition]) -> Judge:
    """A judge of the host by one precondition."""

    def judge(box: Box) -> Judged:
        yield HOST, no_rdma(box) or precondition(box).judgement

    return judge


def no_rdma(box: Box) -> Judgement | None:
    """Why GPUDirect RDMA is not judged on this machine; None where it has GPUs and HCAs."""
    devices = hcas(box)
    if isinstance(devices, Missing):
        return none_here(devices)
    if not nics(box):
        return skip("not-supported", "no InfiniBand devices")
    return None if box.topology.gpus else skip("not-supported", "no GPUs")


def not_judged(box: Box, pairs: object) -> Judgement | None:
    """Why no path between a GPU and an HCA near it can be judged; None where one can."""
    hidden = in_guest(box)
    far = None if pairs else skip("not-supported", "no GPU shares a PCIe switch with an HCA")
    return no_rdma(box) or (far if hidden is None else hidden.judgement)


def near_pairs(box: Box) -> list[tuple[Device, Device]]:
    """The GPUs asked about, each with the HCAs that share its PCIe switches."""
    matrix, adapters = box.topology.matrix(), nics(box)
    return [(gpu, nic) for gpu in box.gpus for nic in adapters if matrix[gpu.name, nic.name].pci in NEAR]


def rdma_configured(box: Box) -> bool:
    """Is a peer memory module loaded? Then GPUDirect RDMA is wanted, and what blocks it is a fault."""
    return bool(loaded(box, *PEER_MODULES))
