"""Counters of a GPU that only growth gives a meaning: PCI replays and time lost to limits."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class GpuCounters(Record):
    """Counters of one GPU; ``_ns`` is time spent below the wanted clocks for that reason."""

    bdf: str
    pcie_replays: int | Missing
    power_ns: int | Missing
    thermal_ns: int | Missing
    sync_boost_ns: int | Missing
    board_limit_ns: int | Missing
    low_utilization_ns: int | Missing
    reliability_ns: int | Missing
    clock_us: int | Missing
    """CPU time stamp of the power counter."""
    reasons_mask: int | Missing
    """``nvmlClocksEventReasons``: no counter, but what holds clocks down twice holds them down for long."""
