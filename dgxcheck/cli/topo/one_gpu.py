"""What ``dgxcheck topo`` answers about single GPUs: ``-c``, ``-n``, ``-p``, ``-C``, ``-M``, ``-gnid``."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dgxcheck.assessment import gpu_list
from dgxcheck.cli.topo.question import Answer, Question, exactly
from dgxcheck.facts.missing import BadInput, Gap, Json, Missing, rows
from dgxcheck.output.json_values import either, members
from dgxcheck.output.topo import matrix as topo_text
from dgxcheck.output.topo import one_gpu as topo_queries
from dgxcheck.output.topo import path as topo_path
from dgxcheck.topology.model import Device

GpuFact = str | int | Missing | None


def gpus_of_cpu(asked: Question) -> Answer:
    """``-c CPU``; a CPU that no NUMA node has is a typing error."""
    lists = [node.cpulist for node in rows(asked.snapshot.numa)]
    cores = [cpulist for cpulist in lists if isinstance(cpulist, str)]
    if cores and len(cores) == len(lists) and not any(topo_queries.holds(cpus, asked.value) for cpus in cores):
        known = " and ".join(filter(None, cores))
        raise BadInput(f"no CPU {asked.value}; the CPUs of the machine are {known}")
    found, unknown = topo_queries.gpus_of_cpu(asked.topology, asked.value)
    return _names(asked, "gpus_near_cpu", f"GPUs near CPU {asked.value}", found, unknown)


def nearest(asked: Question) -> Answer:
    """``-n LEVEL -i ID``."""
    (gpu,) = exactly(asked.topology, asked.ids, 1, "-n")
    pairs = asked.snapshot.gpu_pairs
    boards = pairs if isinstance(pairs, Missing) else {
        frozenset((pair.a, pair.b)) for pair in pairs if pair.common_ancestor == 0
    }  # fmt: skip
    found, unknown = topo_queries.nearest(asked.topology, gpu, asked.value, boards)
    return _names(asked, "gpus_within_level", f"GPUs within level {asked.value} of {gpu.name}", found, unknown)


def gpu_path(asked: Question) -> Answer:
    """``-p -i ID,ID``."""
    a, b = exactly(asked.topology, asked.ids, 2, "-p")
    link = asked.topology.link(a, b)
    text = topo_path.sentence(a, b, link, topo_text.cell(link, False, asked.labels))
    of_link = members(link, "label pci pci_reason? nvlinks nvlinks_reason=nvlink_reason?")
    found: Json = {"a": a.name, "b": b.name, **of_link}
    complete = link.label != "?" and link.nvlinks is not None
    return asked.answer(complete, lambda: f"{text}\n", lambda: {"gpu_path": found})


def near_cpus(asked: Question) -> Answer:
    """``-C -i ID``."""
    return _per_gpu(asked, "NUMA node of the nearest CPUs", lambda gpu: gpu.numa_node)


def near_memory(asked: Question) -> Answer:
    """``-M -i ID``: the GPU's own node where that has memory, else the nearest that has."""
    nodes = asked.snapshot.numa_memory
    return _per_gpu(asked, "NUMA node of the nearest memory",
                    lambda gpu: topo_queries.node_with_memory(gpu.numa_node, nodes))


def own_memory(asked: Question) -> Answer:
    """``-gnid -i ID``: N/A where the driver says that this GPU's memory is no NUMA node."""
    return _per_gpu(asked, "Own NUMA node", lambda gpu: gpu.gpu_numa_id)


def _names(asked: Question, member: str, question: str, found: Sequence[Device], unknown: Sequence[Device]) -> Answer:
    names: Json = {"gpus": [gpu.name for gpu in found], "not_known": [gpu.name for gpu in unknown]}
    complete = not unknown and not asked.topology.gaps
    return asked.answer(complete, lambda: topo_queries.listed(question, found, unknown), lambda: {member: names})


def _per_gpu(asked: Question, what: str, value: Callable[[Device], GpuFact]) -> Answer:
    answers = [(gpu, value(gpu)) for gpu in gpu_list.gpus(asked.topology, asked.ids)]
    nodes: list[Json] = [{"gpu": gpu.name, **either("node", found)} for gpu, found in answers]
    complete = not any(isinstance(found, Missing) and found.gap is not Gap.UNSUPPORTED for _, found in answers)
    return asked.answer(complete, lambda: topo_queries.per_gpu(what, answers), lambda: {"numa_nodes": nodes})
