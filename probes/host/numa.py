"""NUMA nodes and their CPUs."""

from __future__ import annotations

from dgxcheck.facts.host import NumaNode
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.sysfs import NODES
from dgxcheck.source.protocol import Source
from probes.ask import ask, numbered
from probes.parse_scalar import cpulist


def probe(source: Source) -> tuple[NumaNode, ...] | Missing:
    """``/sys/devices/system/node``, by number."""
    numbers = node_numbers(source)
    if isinstance(numbers, Missing):
        return numbers
    return tuple(NumaNode(node=node, cpulist=ask(source, f"{NODES}/node{node}/cpulist", cpulist)) for node in numbers)


def node_numbers(source: Source) -> tuple[int, ...] | Missing:
    """The nodes there are, ascending."""
    return numbered(source, NODES, "node")
