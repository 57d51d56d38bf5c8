"""A GPU's PCI link and BAR1 as NVML tells them."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class GpuPcie(Record):
    """PCI link and BAR1 of one GPU."""

    bdf: str
    link_gen: int | Missing
    """Drops on an idle K80, which is no fault."""
    link_width: int | Missing
    max_link_gen: int | Missing
    """What GPU and slot can do together (``nvmlDeviceGetMaxPcieLinkGeneration``)."""
    max_link_width: int | Missing
    gpu_max_link_gen: int | Missing
    """What the GPU alone can do; from R525 on."""
    bar1_total: int | Missing
    """Bytes, as the next two."""
    bar1_free: int | Missing
    bar1_used: int | Missing
