"""Memory errors that a GPU counted, and the pages and rows it gave up."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class EccCounts(Record):
    """Errors of one type and period, in all and by ``nvmlMemoryLocation_t``; a board counts in some of these."""

    total: int | Missing
    l1_cache: int | Missing
    l2_cache: int | Missing
    device_memory: int | Missing
    """DRAM."""
    register_file: int | Missing
    texture_memory: int | Missing
    texture_shared: int | Missing
    cbu: int | Missing
    sram: int | Missing


class RetiredPage(Record):
    """One page that the driver no longer uses."""

    address: int
    timestamp: int | Missing
    """Seconds since 1970; from R410 and Pascal on."""


class GpuEcc(Record):
    """Error counters of one GPU: volatile since the driver was loaded, aggregate over its life."""

    bdf: str
    volatile_corrected: EccCounts
    volatile_uncorrected: EccCounts
    aggregate_corrected: EccCounts
    aggregate_uncorrected: EccCounts
    retired_single_bit: tuple[RetiredPage, ...] | Missing
    """Pages with several single-bit errors; K80 to V100."""
    retired_double_bit: tuple[RetiredPage, ...] | Missing
    retirement_pending: bool | Missing
    remapped_corrected: int | Missing
    """Rows remapped for corrected errors; from Ampere on, unsupported while MIG instances are active."""
    remapped_uncorrected: int | Missing
    remap_pending: bool | Missing
    remap_failed: bool | Missing
