"""What reaches GPU memory directly: other GPUs, and HCAs."""

from __future__ import annotations

from dgxcheck.assessment.machine import Machine
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.gpudirect.preconditions import no_rdma
from dgxcheck.profiles import library
from dgxcheck.readiness import gpudirect, peer_access


def rdma(machine: Machine) -> tuple[gpudirect.Readiness, ...] | Judgement:
    """GPUDirect RDMA of every GPU and HCA; why there is none of it to judge."""
    topology = machine.topology
    box = Box(snapshot=machine.snapshot, topology=topology, gpus=topology.gpus, boards=library.boards_for(None))
    if (nothing := no_rdma(box)) is not None:
        return nothing
    return tuple(gpudirect.readiness(box, gpu, nic) for gpu in topology.gpus for nic in box.topology.adapters)


def peers(machine: Machine) -> tuple[peer_access.Peering, ...] | Judgement:
    """Peer access of every pair of GPUs; why it cannot be judged."""
    topology = machine.topology
    choice = library.select("auto", machine.snapshot, topology)
    boards = library.boards_for(choice)
    box = Box(snapshot=machine.snapshot, topology=topology, gpus=topology.gpus, choice=choice, boards=boards)
    return peer_access.peerings(box)
