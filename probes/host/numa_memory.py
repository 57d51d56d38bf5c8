"""Memory of the NUMA nodes, and how far they are from each other."""

from __future__ import annotations

from dgxcheck.facts.host import NumaMemory
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.sysfs import NODES
from dgxcheck.source.protocol import Source
from probes.ask import ask
from probes.host.numa import node_numbers
from probes.host.parse_meminfo import mem_total_kb
from probes.parse_scalar import garbled, is_decimal


def probe(source: Source) -> tuple[NumaMemory, ...] | Missing:
    """``meminfo`` and ``distance`` of every ``/sys/devices/system/node/nodeN``, by number."""
    numbers = node_numbers(source)
    return numbers if isinstance(numbers, Missing) else tuple(_node(source, node) for node in numbers)


def distances(text: str, where: str) -> tuple[int, ...] | Missing:
    """``10 21``, from the ACPI SLIT table."""
    fields = text.split()
    return tuple(map(int, fields)) if fields and all(map(is_decimal, fields)) else garbled(text, where)


def _node(source: Source, node: int) -> NumaMemory:
    return NumaMemory(
        node=node,
        memory_kb=ask(source, f"{NODES}/node{node}/meminfo", mem_total_kb),
        distances=ask(source, f"{NODES}/node{node}/distance", distances),
    )
