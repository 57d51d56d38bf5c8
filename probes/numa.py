"""NUMA nodes: their CPUs, memory and distances."""

from __future__ import annotations

from dgxcheck.facts.numa import NumaNode
from dgxcheck.reading import Missing
from dgxcheck.source.protocol import Source
from probes.asking import ask
from probes.meminfo_text import mem_total_kb
from probes.plain_text import cpulist, garbled, is_decimal

_NODES = "/sys/devices/system/node"


def probe(source: Source) -> tuple[NumaNode, ...] | Missing:
    """``/sys/devices/system/node``, by number."""
    names = source.names(_NODES)
    if isinstance(names, Missing):
        return names
    numbers = sorted(int(name[4:]) for name in names if name.startswith("node") and is_decimal(name[4:]))
    return tuple(_node(source, number) for number in numbers)


def distances(text: str, where: str) -> tuple[int, ...] | Missing:
    """``10 21``, from the ACPI SLIT table."""
    fields = text.split()
    return tuple(map(int, fields)) if fields and all(map(is_decimal, fields)) else garbled(text, where)


def _node(source: Source, number: int) -> NumaNode:
    base = f"{_NODES}/node{number}"
    return NumaNode(
        node=number,
        cpulist=ask(source, f"{base}/cpulist", cpulist),
        memory_kb=ask(source, f"{base}/meminfo", mem_total_kb),
        distances=ask(source, f"{base}/distance", distances),
    )
