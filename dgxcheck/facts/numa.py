"""NUMA nodes of the host."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class NumaNode(Record):
    """One ``/sys/devices/system/node/nodeN``."""

    node: int
    cpulist: str | Missing


class NumaMemory(Record):
    """The memory of one node."""

    node: int
    memory_kb: int | Missing
    """``MemTotal`` of the node's ``meminfo``."""
    distances: tuple[int, ...] | Missing
    """To each online node in ascending order; 10 is the node itself."""
