"""A GPU as NVML lists it: identity."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class Gpu(Record):
    """One GPU of ``nvmlDeviceGetHandleByIndex``; a GPU that only PCI shows has no ``Gpu``."""

    bdf: str
    index: int
    name: str | Missing
    uuid: str | Missing
    serial: str | Missing
    minor: int | Missing
    """N of ``/dev/nvidiaN``."""
    vbios: str | Missing
    gpu_numa_id: int | Missing
    """NUMA node that the GPU's own memory forms (``nvmlDeviceGetNumaNodeId``), on Grace and POWER9 only."""


class Nvml(Record):
    """What NVML says of itself and which GPUs it lists."""

    driver_version: str | Missing
    nvml_version: str | Missing
    cuda_version: int | Missing
    """1000 x major + 10 x minor."""
    count: int | Missing
    gpus: tuple[Gpu, ...]
    lost: tuple[Missing, ...]
    """Indexes for which NVML gave no handle, with its reason."""
