"""A GPU's memory: size, use, ECC mode and spare rows."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class RowHistogram(Record):
    """Memory banks by how many spare rows they have left (``nvmlDeviceGetRowRemapperHistogram``)."""

    max: int | Missing
    high: int | Missing
    partial: int | Missing
    low: int | Missing
    none: int | Missing


class GpuMemory(Record):
    """Memory of one GPU, in bytes."""

    bdf: str
    total: int | Missing
    """Net of the driver's reserve up to R470, the physical size from R510 on."""
    reserved: int | Missing
    """From R510 on."""
    free: int | Missing
    used: int | Missing
    ecc: bool | Missing
    ecc_pending: bool | Missing
    """The mode after the next reboot."""
    row_histogram: RowHistogram
    """Missing throughout before Ampere and while MIG instances are active."""
