"""NUMA nodes in order of their number."""

from __future__ import annotations

from fake_source import FakeSource

from dgxcheck.facts.memory import NumaMemory, NumaNode
from dgxcheck.facts.missing import Gap, Missing
from probes.host.memory import numa, numa_memory

NODES = "/sys/devices/system/node"


def test_nodes() -> None:
    files: dict[str, str | bytes | Missing] = {
        f"{NODES}/node10/cpulist": "\n",
        f"{NODES}/node2/cpulist": "20-39,60-79\n",
        f"{NODES}/node2/meminfo": "Node 2 MemTotal:       264176640 kB\nNode 2 MemFree: 1 kB\n",
        f"{NODES}/node2/distance": "10 21\n",
        f"{NODES}/has_cpu": "2\n",
        f"{NODES}/nodes": "?",
    }
    nodes, memory = numa(FakeSource(files)), numa_memory(FakeSource(files))
    assert nodes == (NumaNode(node=2, cpulist="20-39,60-79"), NumaNode(node=10, cpulist=""))
    assert not isinstance(memory, Missing)
    assert memory[0] == NumaMemory(node=2, memory_kb=264176640, distances=(10, 21))
    assert isinstance(memory[1].memory_kb, Missing)


def test_garbled_files_hide_nothing() -> None:
    files: dict[str, str | bytes | Missing] = {
        f"{NODES}/node0/cpulist": "all of them",
        f"{NODES}/node0/meminfo": "MemTotal: lots",
        f"{NODES}/node0/distance": "near far",
    }
    nodes, memory = numa(FakeSource(files)), numa_memory(FakeSource(files))
    assert not isinstance(nodes, Missing)
    assert not isinstance(memory, Missing)
    gaps = [nodes[0].cpulist, memory[0].memory_kb, memory[0].distances]
    assert [gap.gap for gap in gaps if isinstance(gap, Missing)] == [Gap.GARBLED] * 3


def test_a_kernel_without_numa() -> None:
    assert isinstance(numa(FakeSource({})), Missing)
    assert isinstance(numa_memory(FakeSource({})), Missing)
