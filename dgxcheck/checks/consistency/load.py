"""Readings of a GPU against its load: what a GPU at work cannot be at the same time.

Utilisation is that of the last sixth of a second to second, the others are of the moment; clocks stay up for longer
than that after the last kernel.
"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.consistency.contradiction import Contradiction, Facts, number, reading
from dgxcheck.checks.engine.box import Box
from dgxcheck.topology.model import Device

_BUSY = "gpu_processes.gpu_percent"
_FULL = 99
_STATE, _CLOCK, _HIGHEST = "gpu_clocks.performance_state", "gpu_clocks.current.sm", "gpu_clocks.max.sm"
_REASONS, _POWER, _LIMIT = "gpu_counters.reasons_mask", "gpu_power.usage_mw", "gpu_power.enforced_limit_mw"
GPU_IDLE = 0x1
"""``nvmlClocksEventReasonGpuIdle``"""
_LOW_STATE = 8
_IDLE_SHARE = 0.03
"""Of the power limit: no board draws so little, not even idle (V100: 25 of 300 W)."""


def at_load(box: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """Fully utilised, and idle by its performance state, clocks or power."""
    busy = number(facts, _BUSY)
    if busy is None or busy < _FULL:
        return
    state, clock, highest = number(facts, _STATE), number(facts, _CLOCK), number(facts, _HIGHEST)
    power, limit, reasons = number(facts, _POWER), number(facts, _LIMIT), number(facts, _REASONS)
    if state is not None and state >= _LOW_STATE:
        yield _while_busy(f"performance state P{state:g}", box, gpu, facts, _STATE)
    if reasons is not None and int(reasons) & GPU_IDLE:
        yield _while_busy("clocks down because the GPU is idle", box, gpu, facts, _REASONS)
    if clock is not None and highest is not None and reasons == 0 and clock < highest / 3 and (state or 0) < _LOW_STATE:
        yield _while_busy(f"SM clock {clock:g} of {highest:g} MHz without a reason", box, gpu, facts, _CLOCK)
    if power is not None and limit is not None and 0 < power < limit * _IDLE_SHARE:
        yield _while_busy(f"power draw {power / 1000:g} W", box, gpu, facts, _POWER)


def _while_busy(text: str, box: Box, gpu: Device, facts: Facts, path: str) -> Contradiction:
    evidence = (reading(box, gpu, path), reading(box, gpu, _BUSY))
    return Contradiction(f"{text} at {number(facts, _BUSY):g} % utilisation", evidence)
