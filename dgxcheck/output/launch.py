"""Placement for launchers and schedulers: environment, rank file, Slurm's gres.conf, labels of Kubernetes nodes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dgxcheck.facts.host import Cpu
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.nvml.gpu import Gpu
from dgxcheck.launch import Placement
from dgxcheck.output.plain_text import visible
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Topology
from dgxcheck.topology.nvlinks import nvlink_generation, nvlink_graph
from dgxcheck.topology.reference import matches


def nccl_ib_hca(placed: Sequence[Placement]) -> str:
    """``=mlx5_0:1,mlx5_1:1``; empty without a port.

    ``=`` in front of the list makes NCCL match whole names (src/misc/utils.cc, parseStringList).
    """
    ports = dict.fromkeys(port for placement in placed for port in sorted(placement.ports))
    return f"={','.join(ports)}" if ports else ""


def env(placed: Sequence[Placement]) -> Iterator[str]:
    """``NCCL_IB_HCA`` for all processes; what differs by process is in comments, and set by ``dgxcheck bind``."""
    yield "export CUDA_DEVICE_ORDER=PCI_BUS_ID"
    if hca := nccl_ib_hca(placed):
        yield f"export NCCL_IB_HCA='{visible(hca)}'"
    else:
        yield "# no HCA port of the compute fabric is up"
    for rank, each in enumerate(placed):
        port = f"UCX_NET_DEVICES={each.port}, " if each.port else ""
        cpus = "?" if isinstance(each.cpulist, Missing) else each.cpulist
        node = "?" if isinstance(each.numa_node, Missing) else each.numa_node
        yield visible(f"# local rank {rank}, {each.gpu.shown}: {port}CPUs {cpus}, NUMA node {node}")


def rankfile(placed: Sequence[Placement], cores: Mapping[int, range]) -> Iterator[str]:
    """``rank N=+n0 slot=A-B``: the cores of a NUMA node shared evenly among its GPUs; mpirun(1), Rankfiles."""
    nodes = [placement.numa_node for placement in placed]
    for rank, each in enumerate(placed):
        run = None if isinstance(each.numa_node, Missing) else cores.get(each.numa_node)
        if run is None:
            yield f"# {each.gpu.shown}: its cores are not known"
            continue
        share, place = len(run) // nodes.count(each.numa_node), nodes[:rank].count(each.numa_node)
        first = run.start + place * max(share, 1) % len(run)
        yield f"rank {rank}=+n0 slot={first}-{first + max(share, 1) - 1}"


_MODEL = re.compile(r"(?<![A-Za-z0-9])(?:RTX[ -]?)?[A-Z]{1,2}[0-9]{2,4}[A-Z]?(?![0-9])")


def has_nodes(snapshot: Snapshot, placed: Sequence[Placement]) -> bool:
    """Has every GPU its device node, and is none divided by MIG?"""
    gpus = _gpus(snapshot)
    whole = {bdf for bdf, gpu in gpus.items() if not isinstance(gpu.minor, Missing)} - _divided(snapshot)
    return all(placement.gpu.bdf in whole for placement in placed)


def _divided(snapshot: Snapshot) -> set[str]:
    return {modes.bdf for modes in rows(snapshot.gpu_modes) if modes.mig is True}


def gres(
    snapshot: Snapshot, topology: Topology, placed: Sequence[Placement], cores: Mapping[int, range]
) -> Iterator[str]:
    """``Links`` counts NVLinks to each GPU in the order of the bus, -1 is the GPU itself; gres.conf(5).

    ``File`` is the device node by the driver's minor number, which need not be NVML's index; with MIG a job needs the
    nodes of its MIG device too (https://slurm.schedmd.com/gres.html#MIG_Management).
    """
    gpus, divided, cpu = _gpus(snapshot), _divided(snapshot), snapshot.known_host.cpu
    sockets = cpu.sockets if isinstance(cpu, Cpu) else len(cores)
    if cores and isinstance(sockets, int) and len(cores) != sockets:
        yield "# these cores are a part of a socket: slurm.conf needs SlurmdParameters=numa_node_as_socket"
    for placement in placed:
        gpu = gpus.get(placement.gpu.bdf or "")
        if gpu is None or isinstance(gpu.minor, Missing):
            yield f"# {placement.gpu.shown}: its device node is not known"
            continue
        if gpu.bdf in divided:
            yield f"# {placement.gpu.shown}: MIG is enabled; its MIG devices need AutoDetect=nvml, or MultipleFiles"
            continue
        model = _MODEL.search(gpu.name) if isinstance(gpu.name, str) else None
        kind = [f"Type={re.sub('[^a-z0-9]', '', model[0].lower())}"] if model else []  # v100 of Tesla V100-SXM2-16GB
        words = ["Name=gpu", *kind, f"File=/dev/nvidia{gpu.minor}"]
        run = None if isinstance(placement.numa_node, Missing) else cores.get(placement.numa_node)
        words += [] if run is None else [f"Cores={run.start}-{run.stop - 1}"]
        links = _links(topology, placement, placed)
        words += [f"Links={','.join(map(str, links))}"] if links else []
        yield " ".join(words)


def _gpus(snapshot: Snapshot) -> Mapping[str, Gpu]:
    return {gpu.bdf: gpu for gpu in snapshot.listed_gpus}


def _links(topology: Topology, each: Placement, placed: Sequence[Placement]) -> list[int]:
    """Empty without NVLinks, and where a number is not known."""
    found = [-1 if other is each else topology.link(each.gpu, other.gpu).nvlinks for other in placed]
    numbers = [number for number in found if number is not None]
    return numbers if len(numbers) == len(found) and max(numbers) > 0 else []


# in full: with the feature gate DisableAutoPrefix nfd-master drops names without a namespace
_NAME = "feature.node.kubernetes.io/dgxcheck"


def has_graph(topology: Topology) -> bool:
    """Is every label known?"""
    return not isinstance(nvlink_graph(topology), Missing)


def nfd(topology: Topology, placed: Sequence[Placement]) -> Iterator[str]:
    """``NAMESPACE/NAME=VALUE`` a line; what is not known has no line, and so the node no label.

    https://kubernetes-sigs.github.io/node-feature-discovery/stable/usage/customization-guide.html#feature-files
    """
    if not placed:
        return
    yield f"{_NAME}.gpus={len(placed)}"
    yield f"{_NAME}.hca-ports={len({port for placement in placed for port in placement.ports})}"
    graph = nvlink_graph(topology)
    if not isinstance(graph, Missing):
        equal = matches(graph, nvlink_generation(topology)) if graph.pairs else ()
        yield f"{_NAME}.nvlink-graph={equal[0].name if equal else 'other' if graph.pairs else 'none'}"
