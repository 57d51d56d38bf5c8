"""NUMA nodes of the host."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Gap, Missing

_UNASKED = Missing(Gap.UNASKED, "/sys/devices/system/node")


class NumaNode(Record):
    """One ``/sys/devices/system/node/nodeN``."""

    node: int
    cpulist: str | Missing
    memory_kb: int | Missing = _UNASKED
    """``MemTotal`` of the node's ``meminfo``."""
    distances: tuple[int, ...] | Missing = _UNASKED
    """To each online node in ascending order; 10 is the node itself."""
