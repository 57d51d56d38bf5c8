"""GPUDirect: which pairs of GPU and HCA, and of GPUs that PCIe alone joins, are judged, and why none are."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

from dgxcheck.checks.engine.box import HOST, Box, mig_enabled, nvml_unavailable
from dgxcheck.checks.engine.check import Judge, saying
from dgxcheck.checks.engine.finding import Judged, Judgement, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.host_limits import loaded
from dgxcheck.checks.engine.precondition import Precondition, in_guest
from dgxcheck.checks.network.ports import NO_HCAS, hcas, none_here
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.topology.model import DevicePair
from dgxcheck.topology.paths import NEAR

PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")


def of_host(precondition: Callable[[Box], Precondition]) -> Judge:
    """A judge of the host by one precondition."""

    def judge(box: Box) -> Judged:
        yield HOST, no_rdma(box) or precondition(box).judgement

    return saying(precondition, judge)


def no_rdma(box: Box) -> Judgement | None:
    """Why GPUDirect RDMA is not judged on this machine; None where it has GPUs and HCAs."""
    devices = hcas(box)
    if isinstance(devices, Missing):
        return none_here(devices)
    if not box.topology.adapters:
        return NO_HCAS
    return None if box.topology.gpus else skip("not-supported", "no GPUs")


def not_judged(box: Box, pairs: object, peers: object = ()) -> Judgement | None:
    """Why no path between a GPU and an HCA near it, or between the GPUs of ``peers``, can be judged; None where one
    can.
    """
    hidden = in_guest(box)
    far = None if pairs else skip("not-supported", "no GPU shares a PCIe switch with an HCA")
    return (None if peers else no_gpudirect(box)) or (far if hidden is None else hidden.judgement)


def no_gpudirect(box: Box) -> Judgement | None:
    """Why nothing is judged on a machine without pairs of ``pcie_peers``; None where it has GPUs and HCAs.

    Where it has no HCAs, the reason may be that nobody says which GPUs have P2P.
    """
    if (without := no_rdma(box)) is None or len(box.topology.gpus) < 2:
        return without
    p2p = box.snapshot.p2p
    return nvml_unavailable(box) or (unjudged(p2p) if isinstance(p2p, Missing) else without)


def near_pairs(box: Box) -> list[DevicePair]:
    """The GPUs asked about, each with the HCAs that share its PCIe switches."""
    matrix, adapters = box.topology.links, box.topology.adapters
    return [(gpu, nic) for gpu in box.gpus for nic in adapters if matrix[gpu.name, nic.name].pci in NEAR]


def pcie_peers(box: Box) -> list[DevicePair]:
    """The pairs of GPUs, one of them asked about, that PCIe alone joins and to which the driver grants P2P both ways.

    It grants it whatever ACS and an IOMMU do on the way: nvmlDeviceGetP2PStatus reads OK and the copies are slow, hang
    or arrive nowhere (https://github.com/NVIDIA/nccl/issues/2079). GPUs in MIG mode have no P2P.
    """
    granted = {(row.a, row.b) for row in rows(box.snapshot.p2p) if (row.read, row.write) == ("OK", "OK")}
    granted |= {(row.a, row.b) for row in rows(box.snapshot.measurement) if row.kind == "access" and row.value is True}
    return [
        (a, b) for a, b in combinations(box.topology.gpus, 2)
        if {(a.bdf, b.bdf), (b.bdf, a.bdf)} <= granted and (a in box.gpus or b in box.gpus)
        and box.topology.link(a, b).nvlinks == 0 and not mig_enabled(box, a.bdf, b.bdf)
    ]  # fmt: skip


def rdma_configured(box: Box) -> bool:
    """Is a peer memory module loaded? Then GPUDirect RDMA is wanted, and what blocks it is a fault."""
    return bool(loaded(box, *PEER_MODULES))
