"""Logical core numbers of NUMA nodes, as hwloc and Slurm count them: by socket, then within it."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.cpulist import ranges
from dgxcheck.facts.host import Cpu, Host
from dgxcheck.facts.missing import Missing
from dgxcheck.survey import Snapshot


def cores_of_nodes(snapshot: Snapshot) -> Mapping[int, range]:
    """By node that has CPUs; empty where it cannot be told: CPUs offline, or nodes of different size.

    Nodes are in the order of their first CPU, which is that of the sockets; ``lstopo`` numbers cores (``Core L#``) so.
    """
    host, numa = snapshot.host, snapshot.numa
    cpu = host.cpu if isinstance(host, Host) else None
    if not isinstance(cpu, Cpu) or isinstance(cpu.cores, Missing) or isinstance(numa, Missing):
        return {}
    lists = {each.node: ranges(each.cpulist) for each in numa if isinstance(each.cpulist, str) and each.cpulist}
    cpus = {node: runs for node, runs in lists.items() if runs}
    sizes = {sum(map(len, runs)) for runs in cpus.values()}
    if not cpus or len(sizes) != 1 or cpu.cores % len(cpus) or sizes.pop() * len(cpus) != cpu.threads:
        return {}
    each = cpu.cores // len(cpus)
    ordered = sorted(cpus, key=lambda node: min(run.start for run in cpus[node]))
    return {node: range(number * each, (number + 1) * each) for number, node in enumerate(ordered)}
