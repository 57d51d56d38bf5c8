"""NVLinks as each GPU sees them, and what NVML says of every pair of GPUs."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class NvLink(Record):
    """One link position of one GPU (``nvmlDeviceGetNvLink...``)."""

    bdf: str
    link: int
    up: bool | Missing
    generation: int | Missing
    """1 on P100, 2 on V100, 3 on A100, 4 on H100; NVML's version enum counts the half generations 2.2 and 3.1 too."""
    remote_bdf: str | Missing
    remote_type: int | Missing
    """0 GPU, 1 IBMNPU, 2 SWITCH, 255 unknown (``nvmlIntNvLinkDeviceType_t``)."""


class GpuPair(Record):
    """What NVML says of an unordered pair of GPUs."""

    a: str
    b: str
    common_ancestor: int | Missing
    """``nvmlGpuTopologyLevel_t``: 0 internal, 10 single, 20 multiple, 30 host bridge, 40 node, 50 system."""
