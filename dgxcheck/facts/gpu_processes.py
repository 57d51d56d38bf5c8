"""What runs on a GPU."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class GpuProcess(Record):
    """One process with a context on a GPU."""

    pid: int
    used_memory: int | Missing
    """Bytes; unsupported where the driver does not account for them (MIG, some virtual machines)."""
    name: str | Missing


class GpuActivity(Record):
    """How busy one GPU is."""

    bdf: str
    gpu_percent: int | Missing
    """Unsupported while MIG is on, as the next."""
    memory_percent: int | Missing
    compute: tuple[GpuProcess, ...] | Missing
    graphics: tuple[GpuProcess, ...] | Missing
