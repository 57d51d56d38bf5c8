"""Short answers about single GPUs, as ``nvidia-smi topo -c``, ``-n``, ``-C``, ``-M`` and ``-gnid`` give them."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.memory import NumaMemory
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.sysfs import ranges
from dgxcheck.output.plain_text import lines, shown, visible
from dgxcheck.topology.model import Device, Topology

MOST = 5
LEVELS = {"PIX": 1, "PXB": 2, "PHB": 3, "NODE": 4, "SOC": 5}
"""``topo -n``: 0 one board, 1 one switch, 2 several switches, 3 a host bridge, 4 a NUMA node, 5 the whole system."""


def gpus_of_cpu(topology: Topology, cpu: int) -> tuple[tuple[Device, ...], tuple[Device, ...]]:
    """GPUs whose ``local_cpulist`` contains the CPU, and GPUs whose ``local_cpulist`` is unknown."""
    unknown = tuple(gpu for gpu in topology.gpus if isinstance(gpu.cpu_affinity, Missing))
    near = (gpu for gpu in topology.gpus if isinstance(gpu.cpu_affinity, str) and holds(gpu.cpu_affinity, cpu))
    return tuple(near), unknown


def holds(cpulist: str, cpu: int) -> bool:
    """Does a list such as ``0-19,40-59`` contain the CPU? False for text that is not a list."""
    return any(cpu in run for run in ranges(cpulist) or ())


def nearest(
    topology: Topology, gpu: Device, level: int, boards: set[frozenset[str]] | Missing
) -> tuple[tuple[Device, ...], tuple[Device, ...]]:
    """GPUs no farther from ``gpu`` than ``level`` (keys of ``topo -n``), and GPUs whose distance is unknown.

    ``boards`` are the pairs of bdfs on one board, level 0 (``NVML_TOPOLOGY_INTERNAL``): only NVML reports them, as the
    PCI tree of a K80 looks the same on one board and across two.
    """
    inside, unknown = [], []
    for other in topology.gpus:
        if other is not gpu:
            within = _within(topology, gpu, other, level, boards)
            inside += [other] if within else []
            unknown += [other] if within is None else []
    return tuple(inside), tuple(unknown)


def _within(topology: Topology, a: Device, b: Device, level: int, boards: set[frozenset[str]] | Missing) -> bool | None:
    """Is ``b`` within the level of ``a``? None where unknown."""
    way = topology.link(a, b).pci
    if not isinstance(boards, Missing) and frozenset((a.bdf or "", b.bdf or "")) in boards:
        return True
    if level == 0:
        return None if isinstance(boards, Missing) and way in (None, "PIX") else False
    if way is not None or level == MOST:
        return level == MOST or LEVELS[way or "SOC"] <= level
    if isinstance(a.path, Missing) or isinstance(b.path, Missing):
        return None
    # two root buses, and the NUMA node of one is unknown
    return None if level == LEVELS["NODE"] else False


@or_gap
def node_with_memory(node: int | Missing, nodes: Sequence[NumaMemory] | Missing) -> int | Missing:
    """The node itself if it has memory, else the nearest that has, by ``distance`` of ``/sys/devices/system/node``."""
    node, nodes = need(node), need(nodes)
    own = next((candidate for candidate in nodes if candidate.node == node), None)
    if own is None:
        return Missing(Gap.ABSENT, f"/sys/devices/system/node/node{node}", f"no data for NUMA node {node}")
    if need(own.memory_kb):
        return node
    each = zip(need(own.distances), nodes, strict=False)
    distances = [(distance, other.node) for distance, other in each if need(other.memory_kb)]
    return min(distances)[1] if distances else Missing(Gap.ABSENT, "meminfo", "no node has memory")


def listed(question: str, gpus: Sequence[Device], unknown: Sequence[Device]) -> str:
    """``question`` with the names of the GPUs, and of those it is unknown for."""
    sentences = [f"{question}: {', '.join(visible(gpu.name) for gpu in gpus) or 'none'}"]
    if unknown:
        sentences.append(f"Unknown for {', '.join(visible(gpu.name) for gpu in unknown)}.")
    return lines(sentences)


def per_gpu(what: str, answers: Sequence[tuple[Device, object]]) -> str:
    """One line per GPU; a gap with its reason."""
    sentences = []
    for gpu, value in answers:
        text = shown(value)
        if isinstance(value, Missing):
            why = f"unknown ({visible(value.where)}: {visible(str(value))})"
            text = "N/A" if value.gap is Gap.UNSUPPORTED else why
        sentences.append(f"{what} of {visible(gpu.name)}: {text}")
    return lines(sentences)
