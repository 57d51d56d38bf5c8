"""Plan of a burn-in: GPUs to load, their peers, and the files with PCIe error counters."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import groupby

from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.nvml.gpu import GpuModes
from dgxcheck.facts.pci import AerDevice, AerErrors
from dgxcheck.facts.record import Record
from dgxcheck.measure.plan import cpus
from dgxcheck.topology.model import PCI_CLASSES, Device, Topology

_AER = ("correctable", "nonfatal", "fatal")
EXCLUSIVE = 3
"""``NVML_COMPUTEMODE_EXCLUSIVE_PROCESS``"""


class GpuLoad(Record):
    """One GPU's part of the plan."""

    gpu: str
    peers: tuple[tuple[str, ...], ...]
    """Possible peers in groups of equal distance, the nearest first."""
    cpus: tuple[int, ...]


def loads(topology: Topology, gpus: Sequence[Device], modes: tuple[GpuModes, ...] | Missing = ()) -> list[GpuLoad]:
    """One per GPU that NVML lists; peers with the most NVLinks first, each GPU begins with the one after it.

    GPUs in exclusive process mode have no peers and are not peers: a peer's context would block their own load.
    """
    listed = [gpu for gpu in gpus if gpu.index is not None and gpu.bdf is not None]
    alone = {row.bdf for row in rows(modes) if row.compute_mode == EXCLUSIVE}
    plan = []
    for place, gpu in enumerate(listed):
        others = [other for other in (*listed[place + 1 :], *listed[:place]) if not {gpu.bdf, other.bdf} & alone]
        far = partial(_far, topology, gpu)
        groups = groupby(sorted(others, key=far), far)
        near = tuple(tuple(str(peer.bdf) for peer in group) for _, group in groups)
        plan.append(GpuLoad(gpu=str(gpu.bdf), peers=near, cpus=tuple(cpus(gpu.cpu_affinity))))
    return plan


def matched(loads: Sequence[GpuLoad], busy: Collection[str] = ()) -> dict[str, str]:
    """The peer that each GPU of the ``loads`` sends to: never a ``busy`` one, no two GPUs to the same peer.

    A maximum matching, nearest peers first; a GPU yields its peer to another one if it has a second choice.
    """
    senders: dict[str, str] = {}
    free = [load for load in loads if load.gpu not in busy]
    for tiers in range(1, 1 + max((len(load.peers) for load in free), default=0)):
        near = {load.gpu: [peer for group in load.peers[:tiers] for peer in group if peer not in busy] for load in free}
        for gpu in near:
            if gpu not in senders.values():
                _place(gpu, near, senders, set())
    return {gpu: peer for peer, gpu in senders.items()}


def _place(gpu: str, near: Mapping[str, Sequence[str]], senders: dict[str, str], tried: set[str]) -> bool:
    """Kuhn's algorithm: assign ``gpu`` a free peer, or one whose sender can move to another."""
    for peer in near[gpu]:
        if peer not in tried:
            tried.add(peer)
            if peer not in senders or _place(senders[peer], near, senders, tried):
                senders[peer] = gpu
                return True
    return False


def files(root: str, listed: tuple[AerDevice, ...] | Missing) -> dict[str, str]:
    """``0000:06:00.0 fatal`` to the file that counts them, of every device that has one."""
    return {f"{row.bdf} {severity}": f"{root}/sys/bus/pci/devices/{row.bdf}/aer_dev_{severity}"
            for row in rows(listed) for severity in _AER if isinstance(getattr(row, severity), AerErrors)}


def _far(topology: Topology, a: Device, b: Device) -> tuple[int, int]:
    """Orders neighbours: by NVLinks, then by where their PCIe paths meet."""
    link = topology.link(a, b)
    return -(link.nvlinks or 0), 0 if link.nvlinks else PCI_CLASSES.index(link.pci) if link.pci else len(PCI_CLASSES)
