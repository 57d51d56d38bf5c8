"""A busy GPU that is slower than those of its model beside it: kept in low clocks, or capped below its limit."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import asked_twice, remedy_of
from dgxcheck.checks.engine.expected import siblings
from dgxcheck.checks.engine.finding import Evidence, Judgement, answered, judged, skip
from dgxcheck.checks.engine.growth import counter_growth
from dgxcheck.components.device_facts import GpuView
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import GPU_IDLE
from dgxcheck.facts.missing import Missing, need, or_gap, or_none
from dgxcheck.facts.nvml.readings import GpuCounters
from dgxcheck.facts.record import Record

POWER_CAP = 0x4
"""``nvmlClocksEventReasonSwPowerCap``: no fault by itself."""
BY_SETTING = 0x2
"""``nvmlClocksEventReasonApplicationsClocksSetting``: application or locked clocks."""
BUSY = 95
"""Percent utilisation. Ours, as the shares below."""
LOW_STATE = 8
_WELL_BELOW, _NEAR = 0.7, 0.8
"""Of the power limit: a cap there has another reason; a sibling there has the power that this one lacks."""
_SLOWER = 0.75
"""Of a sibling's SM clock: draw is a mean over a second, and lags behind a load that begins or ends."""
_LESS = 0.85
"""Of a sibling's draw in W: with a lower limit it draws a larger share of it."""
_NEARBY_S = 600.0
"""Two readings of the reasons further apart say nothing about the time between."""
_HALF_NS = 1e9 / 2


class _Load(Record):
    """A busy GPU: its state, clock in MHz, the share of its power limit that it draws, and what holds its clocks."""

    name: str
    bdf: str
    state: int
    clock: int
    share: float
    power_mw: int
    limit_mw: int
    mask: int
    programs: bool | None
    """Does any compute process run? None where that is not known."""


@or_gap
def _load(view: GpuView, name: str) -> _Load | None:
    """None for one that is not fully used; the gap where a figure is missing, as under MIG and in a vGPU."""
    clocks, power, activity = need(view.clocks), need(view.power), need(view.processes)
    draw, limit = need(power.usage_mw), need(power.enforced_limit_mw)
    if need(activity.gpu_percent) < BUSY or limit <= 0:
        return None
    programs = None if isinstance(activity.compute, Missing) else bool(activity.compute)
    return _Load(name=name, bdf=clocks.bdf, state=need(clocks.performance_state), clock=need(clocks.current.sm),
                 share=draw / limit, power_mw=draw, limit_mw=limit, mask=need(clocks.reasons).mask,
                 programs=programs)  # fmt: skip


def _beside(box: Box, bdf: str) -> tuple[_Load, list[_Load]] | None:
    """A fully used GPU and those of its model, as fully used; None without."""
    gpu = box.topology.device(bdf)
    if gpu is None or not isinstance(own := _load(box.gpu(gpu), gpu.name), _Load):
        return None
    loads = (_load(box.gpu(other), other.name) for other in siblings(box, gpu))
    return own, [load for load in loads if isinstance(load, _Load)]


def capped(box: Box, bdf: str) -> Judgement | None:
    """A GPU that its power cap holds far below its own limit, while one of its model draws more, near its own limit,
    and is faster.

    The reason and the clock are of an instant, the draw is a mean over a second: of a load that changes they do not
    belong together, and so one reading warns of nothing.
    """
    if (found := _beside(box, bdf)) is None:
        return None
    own, others = found
    if not own.mask & POWER_CAP or own.mask & BY_SETTING:
        return None
    free = [other for other in others
            if other.share >= _NEAR and own.clock < other.clock * _SLOWER and own.power_mw <= other.power_mw * _LESS
            and own.power_mw < min(own.limit_mw, other.limit_mw) * _WELL_BELOW]  # fmt: skip
    if not free:
        return None
    most = max(free, key=lambda load: load.share)
    message = (
        f"clocks are held down: power cap at {_watts(own)}; {most.name} draws {_watts(most)} at the same utilisation"
    )
    evidence = (answered(own.mask, "nvmlDeviceGetCurrentClocksEventReasons", own.bdf), *_evidence((own, most)))
    if isinstance(box.growth, Judgement):
        return skip("no-history", f"{message}; a second reading shows whether it stays so", *evidence)
    if (lasting := _stays_capped(box, own)) is None:
        return None
    watts, remedy = (own.power_mw / 1000, own.limit_mw / 1000, "W"), remedy_of("clock.throttle", "capped")
    return judged(Fault.POWER_VIOLATION, message, *watts, (lasting, *evidence), warns=True, remedy=remedy)


def _stays_capped(box: Box, own: _Load) -> Evidence | None:
    """Evidence that the cap held it for half of the time between two readings, or at both; None where it drew near its
    limit meanwhile.
    """
    if (both := both_counters(box, own.bdf)) is None:
        return None
    growth, old, new = both
    energy = counter_growth(old.energy_mj, new.energy_mj)
    if isinstance(energy, int) and energy >= own.limit_mw * _WELL_BELOW * growth.seconds:
        return None
    lost = counter_growth(old.power_ns, new.power_ns)
    if isinstance(lost, int) and lost >= growth.seconds * _HALF_NS > 0:
        return asked_twice(old, new, "power_ns")
    masks = masks_of(growth, old, new)
    if masks is None or not all(mask & POWER_CAP and not mask & BY_SETTING for mask in masks):
        return None
    return asked_twice(old, new, "reasons_mask")


@or_none
def both_counters(box: Box, bdf: str) -> tuple[Growth, GpuCounters, GpuCounters] | None:
    """Those of two readings; None without two, or where one is missing."""
    growth = box.growth
    if isinstance(growth, Judgement):
        return None
    return growth, need(GpuView(growth.old, bdf).counters), need(GpuView(growth.new, bdf).counters)


@or_none
def masks_of(growth: Growth, old: GpuCounters, new: GpuCounters) -> tuple[int, int] | None:
    """What holds the clocks at each of two readings; None where they are far apart, or one is missing."""
    return (need(old.reasons_mask), need(new.reasons_mask)) if growth.seconds <= _NEARBY_S else None


def kept_slow(box: Box, bdf: str) -> Judgement | None:
    """A fully used GPU in an idle performance state, or with low clocks for which the driver has no reason at either
    reading, while those of its model are in a high state, faster and draw more.

    Utilisation without a program may be wrong itself, and so says nothing where only the siblings run programs. It is
    a mean, too: a program that ended a moment ago is still in it. So none of two readings may call the GPU idle.
    """
    found, both = _beside(box, bdf), both_counters(box, bdf)
    if found is None or both is None or (masks := masks_of(*both)) is None:
        return None
    (own, others), (_, old, new) = found, both
    if any(mask & (BY_SETTING | GPU_IDLE) for mask in (own.mask, *masks)):
        return None
    if own.state < LOW_STATE and (own.programs is not True or any((own.mask, *masks))):
        return None
    fast = [other for other in others
            if other.state < LOW_STATE and own.clock < other.clock * _SLOWER and own.power_mw < other.power_mw * _SLOWER
            and (own.programs is None or own.programs >= bool(other.programs))]  # fmt: skip
    if len(fast) < max(1, len(others)):
        return None
    best = max(fast, key=lambda load: load.clock)
    message = (
        f"clocks are held down: SM clock {own.clock} MHz in P{own.state} at full utilisation; {best.name} has"
        f" {best.clock} MHz in P{best.state}"
    )
    state = answered(own.state, "nvmlDeviceGetPerformanceState", own.bdf)
    evidence = (state, asked_twice(old, new, "reasons_mask"), *_evidence((own, best)))
    remedy = remedy_of("clock.throttle", "kept slow")
    return judged(Fault.CLOCKS_STUCK, message, own.clock, best.clock, "MHz", evidence, warns=True, remedy=remedy)


def _watts(load: _Load) -> str:
    return f"{load.power_mw / 1000:g} of {load.limit_mw / 1000:g} W"


def _evidence(loads: tuple[_Load, ...]) -> Iterator[Evidence]:
    for load in loads:
        yield answered(load.power_mw, "nvmlDeviceGetPowerUsage", load.bdf)
        yield answered(load.clock, "nvmlDeviceGetClockInfo", load.bdf, 1)
