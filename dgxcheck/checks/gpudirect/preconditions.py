"""GPUDirect RDMA: which pairs of GPU and HCA are looked at, and why none are."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Judge
from dgxcheck.checks.engine.finding import Judgement, Subject, skip
from dgxcheck.checks.engine.precondition import Said
from dgxcheck.checks.host.modules import loaded
from dgxcheck.checks.host.virtual_machines import in_guest
from dgxcheck.checks.network.hcas import hcas, nics, none_here
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.classes import NEAR
from dgxcheck.topology.model import Device

PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")


def of_box(said: Callable[[Box], Said]) -> Judge:
    """A judge of the whole box by one precondition."""

    def judge(box: Box) -> Iterator[tuple[Subject, Judgement]]:
        yield HOST, no_rdma(box) or said(box).judgement

    return judge


def no_rdma(box: Box) -> Judgement | None:
    """Why there is no GPUDirect RDMA to speak of; None where GPUs and HCAs are here."""
    found = hcas(box)
    if isinstance(found, Missing):
        return none_here(found)
    if not nics(box):
        return skip("not-supported", "no InfiniBand device is here")
    return None if box.topology.gpus else skip("not-supported", "no GPU is here")


def not_judged(box: Box, pairs: list[tuple[Device, Device]]) -> Judgement | None:
    """Why nothing between GPUs and the HCAs near them can be judged; None where it can."""
    hidden = in_guest(box)
    guest_of = None if hidden is None else hidden.judgement
    far = None if pairs else skip("not-supported", "no GPU has an HCA behind its own PCIe switches")
    return no_rdma(box) or guest_of or far


def near_pairs(box: Box) -> list[tuple[Device, Device]]:
    """GPUs asked about, each with the HCAs behind its own PCIe switches."""
    matrix = box.topology.matrix()
    return [(gpu, nic) for gpu in box.gpus for nic in nics(box) if matrix[gpu.name, nic.name].pci in NEAR]


def wanted(box: Box) -> bool:
    """Was this box set up for GPUDirect RDMA? Then what stands in its way is a fault, else the site's choice."""
    return bool(loaded(box, *PEER_MODULES))
