"""A GPU's temperatures, their thresholds and its fan."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class GpuThermal(Record):
    """Temperatures of one GPU, in degrees Celsius."""

    bdf: str
    gpu_c: int | Missing
    memory_c: int | Missing
    """HBM, from V100 on (field 82)."""
    shutdown_c: int | Missing
    slowdown_c: int | Missing
    memory_max_c: int | Missing
    gpu_max_c: int | Missing
    """Highest for normal operation; K80 and P100 have none."""
    margin_c: int | Missing
    """Degrees left to the nearest slowdown (T.Limit); from R570 on."""
    shutdown_tlimit_c: int | Missing
    """The margin at which it shuts down, 0 or negative (field 193); Hopper gives these four in place of degrees."""
    slowdown_tlimit_c: int | Missing
    memory_max_tlimit_c: int | Missing
    gpu_max_tlimit_c: int | Missing
    fan_percent: int | Missing
    """Unsupported on boards that the chassis cools."""
