"""Short answers about single GPUs, as ``nvidia-smi topo -c``, ``-n``, ``-C``, ``-M`` and ``-gnid`` give them."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.output.plain import lines, shown, visible
from dgxcheck.reading import Missing
from dgxcheck.topology.model import Device, Topology

LEVELS = {"PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SOC": 5}
"""``topo -n``: 0 one board, 1 one switch, 2 several switches, 3 a host bridge, 4 a NUMA node, 5 the whole system."""


def gpus_of_cpu(topology: Topology, cpu: int) -> tuple[tuple[Device, ...], tuple[Device, ...]]:
    """GPUs whose ``local_cpulist`` holds the CPU, and GPUs of which that is not known."""
    unknown = tuple(gpu for gpu in topology.gpus if isinstance(gpu.cpu_affinity, Missing))
    near = (gpu for gpu in topology.gpus if isinstance(gpu.cpu_affinity, str))
    return tuple(gpu for gpu in near if cpu in cpus(str(gpu.cpu_affinity))), unknown


def cpus(cpulist: str) -> set[int]:
    """CPU numbers of a kernel list: ``0-2,8`` -> 0, 1, 2, 8; what is no list has none."""
    found: set[int] = set()
    for part in cpulist.strip().split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first), int(first) + 65536) + 1))
    return found


def nearest(
    topology: Topology, gpu: Device, level: int, boards: set[frozenset[str]]
) -> tuple[tuple[Device, ...], tuple[Device, ...]]:
    """GPUs no farther from ``gpu`` than ``level``, and those whose distance is not known.

    A level takes in all nearer ones (``nvmlGpuTopologyLevel_t``). ``boards`` are pairs of GPUs on one board, level 0.
    """
    matrix = topology.matrix()
    near, unknown = [], []
    for other in topology.gpus:
        if other is gpu:
            continue
        link = matrix[gpu.name, other.name]
        one_board = frozenset((gpu.bdf or "", other.bdf or "")) in boards
        if link.pci is None and not one_board:
            unknown.append(other)
        elif (0 if one_board or link.pci is None else LEVELS[link.pci]) <= level:
            near.append(other)
    return tuple(near), tuple(unknown)


def listed(question: str, found: Sequence[Device], unknown: Sequence[Device]) -> str:
    """``question`` with the names of the GPUs found, and of those that could not be judged."""
    said = [f"{question}: {', '.join(visible(gpu.name) for gpu in found) or 'none'}"]
    if unknown:
        said.append(f"Not known for {', '.join(visible(gpu.name) for gpu in unknown)}.")
    return lines(said)


def per_gpu(what: str, answers: Sequence[tuple[Device, object]]) -> str:
    """One line per GPU; a gap with its reason."""
    said = []
    for gpu, value in answers:
        text = f"not known: {visible(str(value))}" if isinstance(value, Missing) else shown(value)
        said.append(f"{what} of {visible(gpu.name)}: {text}")
    return lines(said)
