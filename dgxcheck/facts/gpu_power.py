"""A GPU's power draw and limits."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class GpuPower(Record):
    """Power of one GPU, in milliwatts."""

    bdf: str
    usage_mw: int | Missing
    enforced_limit_mw: int | Missing
    """The lowest of all limits that apply."""
    limit_mw: int | Missing
    default_limit_mw: int | Missing
    min_limit_mw: int | Missing
    max_limit_mw: int | Missing
