"""NUMA nodes, their memory, and its controllers."""

from __future__ import annotations

from dgxcheck.facts.host import MemoryController, NumaMemory, NumaNode
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.sysfs import EDAC, NODES
from dgxcheck.source.protocol import Source
from probes.ask import ask, cpulist, decimal, garbled, is_decimal, line, numbered


def numa(source: Source) -> tuple[NumaNode, ...] | Missing:
    """``/sys/devices/system/node``, by number."""
    if isinstance(numbers := node_numbers(source), Missing):
        return numbers
    return tuple(NumaNode(node=node, cpulist=ask(source, f"{NODES}/node{node}/cpulist", cpulist)) for node in numbers)


def node_numbers(source: Source) -> tuple[int, ...] | Missing:
    """The nodes there are, ascending."""
    return numbered(source, NODES, "node")


def numa_memory(source: Source) -> tuple[NumaMemory, ...] | Missing:
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


def edac(source: Source) -> tuple[MemoryController, ...] | Missing:
    """``/sys/devices/system/edac/mc``, by number."""
    numbers = numbered(source, EDAC, "mc")
    return numbers if isinstance(numbers, Missing) else tuple(_memory_controller(source, f"mc{n}") for n in numbers)


def _memory_controller(source: Source, name: str) -> MemoryController:
    base = f"{EDAC}/{name}"
    return MemoryController(
        name=name,
        mc_name=ask(source, f"{base}/mc_name", line),
        corrected=ask(source, f"{base}/ce_count", decimal),
        uncorrected=ask(source, f"{base}/ue_count", decimal),
        size_mb=ask(source, f"{base}/size_mb", decimal),
    )


def mem_total_kb(text: str, where: str) -> int | Missing:
    """``MemTotal:  528278540 kB``; a node's file puts ``Node 0`` before it."""
    for row in text.splitlines():
        name, found, value = row.partition("MemTotal:")
        if found and (not name or name.startswith("Node ")):
            number, _, unit = value.strip().partition(" ")
            return int(number) if is_decimal(number) and unit == "kB" else garbled(row, where)
    return Missing(Gap.GARBLED, where, "no MemTotal line")
