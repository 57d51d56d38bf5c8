"""The CPUs and memory near a GPU, as the driver tells them."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class GpuAffinity(Record):
    """Ideal CPUs and NUMA nodes of one GPU."""

    bdf: str
    cpulist: str | Missing
    """In the kernel's form: ``0-19,40-59``."""
    memory_nodes: tuple[int, ...] | Missing
    """From R450 on."""
