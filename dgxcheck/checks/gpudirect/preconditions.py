"""GPUDirect RDMA: which pairs of GPU and HCA are looked at, and what one precondition makes of one pair."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from dgxcheck.checks.engine.box import HOST, Box, guest
from dgxcheck.checks.engine.check import Judge
from dgxcheck.checks.engine.finding import Judgement, SkipReason, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.network.hcas import hcas, none_here
from dgxcheck.facts.host import Modules
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.topology.model import Device

State = Literal["ready", "slow", "no", "?"]
"""Of a pair: data go straight from GPU to HCA; they do, but slowly or not by default; they do not; cannot tell."""
NEAR = ("PIX", "PXB")
"""What NCCL uses for GPUDirect RDMA as it is set (``NCCL_NET_GDR_LEVEL``)."""
PEER_MODULES = ("nvidia_peermem", "nv_peer_mem")
_OF_VIRTUAL_MACHINES = ("vfio_pci", "mdev", "nvidia_vgpu_vfio")
"""Loaded by who gives devices to virtual machines, never by itself; of mediated devices the last two."""
_KVM = ("kvm_intel", "kvm_amd")
_AS_ROOT = "run dgxcheck as root (sudo dgxcheck health)"


class Said(Record, kw_only=False):
    """One precondition: what it means for a pair, and how it ends as a finding."""

    state: State
    judgement: Judgement
    short: str = ""
    """In words for a pair, where the judgement speaks of more than that; ``words`` is one of the two."""

    @property
    def words(self) -> str:
        return self.short or self.judgement.message


def unsaid(gap: Missing) -> Said:
    """Cannot tell; what root could read says so."""
    judgement = unjudged(gap)
    if gap.gap is Gap.LOST:
        judgement = skip("dependency-failed", f"{gap.where}: {gap}", *judgement.evidence)
    if gap.gap is Gap.DENIED:
        judgement = skip("no-permission", f"{gap.where}: {gap}; {_AS_ROOT}", *judgement.evidence)
        if gap.where.endswith("/config"):
            return Said("?", judgement, f"configuration space is for root to read: {_AS_ROOT}")
    return Said("?", judgement)


def of_box(said: Callable[[Box], Said]) -> Judge:
    """A judge of the whole box by one precondition."""

    def judge(box: Box) -> Iterator[tuple[Subject, Judgement]]:
        yield HOST, no_rdma(box) or said(box).judgement

    return judge


def elsewhere(state: State, message: str, check: str, reason: SkipReason = "dependency-failed") -> Said:
    """It stands in the way, and another check has said so."""
    return Said(state, skip(reason, f"{message}: see {check}"))


def nics(box: Box) -> list[Device]:
    """HCAs without virtual functions."""
    return [each for each in box.topology.devices if each.kind == "nic" and each.is_vf is not True]


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


def loaded(box: Box, *names: str) -> list[str]:
    """Which of these modules the kernel has."""
    modules = box.snapshot.modules
    return [each.name for each in modules.modules if each.name in names and each.loaded is True] if isinstance(
        modules, Modules
    ) else []  # fmt: skip


def wanted(box: Box) -> bool:
    """Was this box set up for GPUDirect RDMA? Then what stands in its way is a fault, else the site's choice."""
    return bool(loaded(box, *PEER_MODULES))


def hypervisor(box: Box) -> str:
    """How it shows that virtual machines run here, which need ACS and IOMMU; empty where nothing does."""
    for function in box.topology.functions.values():
        if function.driver == "vfio-pci":
            return f"{function.bdf} is bound to vfio-pci"
    if names := loaded(box, *_OF_VIRTUAL_MACHINES):
        return f"{names[0]} is loaded"
    modules = box.snapshot.modules
    for each in modules.modules if isinstance(modules, Modules) else ():
        if each.name in _KVM and isinstance(each.refcnt, int) and each.refcnt > 0:
            return f"{each.name} is in use"
    return ""


def unseen_of_virtual_machines(box: Box) -> Iterator[Missing]:
    """What ``hypervisor`` would have to see and cannot: a KVM built into the kernel does not count its users."""
    modules = box.snapshot.modules
    yield from (modules,) if isinstance(modules, Missing) else ()
    for each in () if isinstance(modules, Missing) else modules.modules:
        for said in (each.loaded, each.refcnt if each.name in _KVM and each.loaded is True else None):
            yield from (said,) if isinstance(said, Missing) else ()
    for function in box.topology.functions.values():
        yield from (function.driver,) if isinstance(function.driver, Missing) else ()


def in_guest(box: Box) -> Said | None:
    """What a virtual machine cannot see of its host; None on the host itself."""
    host = box.snapshot.host
    unknown = host if isinstance(host, Missing) else host.vm
    if isinstance(unknown, Missing):
        judgement = unsaid(unknown).judgement
        return Said("?", replace(judgement, message=f"this may be a virtual machine: {judgement.message}"))
    vm = guest(box)
    if vm is None:
        return None
    return Said("?", skip("not-visible", f"{vm} decides about it and hides it from its guest"))
