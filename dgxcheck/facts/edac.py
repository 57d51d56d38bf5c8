"""Errors of the host's memory (drivers/edac)."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class MemoryController(Record):
    """One ``/sys/devices/system/edac/mc/mcN``; counts since the driver was loaded."""

    name: str
    mc_name: str | Missing
    corrected: int | Missing
    uncorrected: int | Missing
    size_mb: int | Missing
