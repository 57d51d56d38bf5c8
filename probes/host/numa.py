"""NUMA nodes and their CPUs."""

from __future__ import annotations

from dgxcheck.facts.host import NumaNode
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.ask import ask
from probes.parse_scalar import cpulist, is_decimal

NODES = "/sys/devices/system/node"


def probe(source: Source) -> tuple[NumaNode, ...] | Missing:
    """``/sys/devices/system/node``, by number."""
    numbers = node_numbers(source)
    if isinstance(numbers, Missing):
        return numbers
    return tuple(NumaNode(node=node, cpulist=ask(source, f"{NODES}/node{node}/cpulist", cpulist)) for node in numbers)


def node_numbers(source: Source) -> list[int] | Missing:
    """The nodes there are, ascending."""
    names = source.names(NODES)
    if isinstance(names, Missing):
        return names
    return sorted(int(name[4:]) for name in names if name.startswith("node") and is_decimal(name[4:]))
