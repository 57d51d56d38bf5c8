"""What holds the clocks of a GPU down: heat, the power brake, settings."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import Check, asked_twice, component_of, part, per_gpu, setting_of_all
from dgxcheck.checks.engine.finding import (
    Evidence,
    Judgement,
    Status,
    answered,
    judged,
    skip,
)
from dgxcheck.checks.engine.growth import counter_growth
from dgxcheck.checks.gpu.beside_siblings import BY_SETTING, both_counters, capped, kept_slow, masks_of
from dgxcheck.components.component import host_part
from dgxcheck.components.device_facts import architecture
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, known, need, or_gap, or_none, rows
from dgxcheck.facts.nvml.readings import ClockPair, Clocks, GpuClocks, GpuThermal

_VOLTA = 5
"""``nvmlDeviceArchitecture_t``"""


def can_lock_clocks(box: Box, bdf: str) -> bool:
    """``nvidia-smi -lgc`` and ``-rgc`` exist from Volta on (nvidia-smi(1)); true where that is not known."""
    number = architecture(box, bdf)
    return number is None or number >= _VOLTA


BRAKE, THERMAL, SLOWDOWN, SOFTWARE = 0x80, 0x40, 0x8, 0x20
HELD_BACK = {
    BRAKE: ("power brake", Fault.POWER_BRAKE),
    THERMAL: ("hardware thermal slowdown", Fault.THERMAL_SLOWDOWN),
    SLOWDOWN: ("hardware slowdown", Fault.HARDWARE_SLOWDOWN),
    SOFTWARE: ("software thermal slowdown", Fault.THERMAL_SLOWDOWN),
}
"""Bits of ``nvmlClocksEventReasons`` in words, with their faults, the one that says most first: 0x8 is set along with
0x40 and 0x80."""
_FAR_C = 20
"""So much below a threshold no part of the GPU is taken to be at it. Ours."""
_KINDS = ((0, "graphics"), (2, "memory"))  # nvmlClockType_t


def slowdown(mask: int) -> int:
    """The bit of ``nvmlClocksEventReasons`` that best explains why clocks are held down; 0 if none does."""
    return next((bit for bit in HELD_BACK if mask & bit), 0)


def is_by_heat(mask: int) -> bool:
    """Do these bits name heat? Hardware slowdown alone may be heat; beside the power brake it belongs to that."""
    return bool(mask & (THERMAL | SOFTWARE)) or slowdown(mask) == SLOWDOWN


def _throttle(box: Box, clocks: GpuClocks) -> Judgement:
    """Warns if clocks are held down by the power brake (0x80), a hardware slowdown (0x8, 0x40) or a software thermal
    slowdown (0x20); fails if two readings within 10 minutes have the same reason, or if more than {clock.throttle} of
    the time between two readings was lost to heat or the power brake; a slowdown that took so much and is over warns.
    Idle clocks, the power cap and clocks that were set are not faults, unless at two readings a fully used GPU has idle
    clocks, or low ones without any reason, or its cap at less than 70 % of its power limit, while one of its model
    beside it is fully used, faster and draws more.

    Source: nvmlClocksEventReasons in nvml.h; nvmlDeviceGetViolationStatus
    """
    mask = need(clocks.reasons).mask
    evidence = answered(mask, "nvmlDeviceGetCurrentClocksEventReasons", clocks.bdf)
    bit = slowdown(mask)
    if not bit:
        slower = kept_slow(box, clocks.bdf) or capped(box, clocks.bdf)
        return slower or _before(box, clocks.bdf) or Judgement(Status.PASS, "no slowdown", evidence=(evidence,))
    name, fault = HELD_BACK[bit]
    if bit == SLOWDOWN and (cool := _cool(box.gpu(clocks.bdf).thermal)):
        name, fault = f"{name} {cool}", Fault.POWER_VIOLATION
    if (lasting := _lasting(box, clocks.bdf, bit)) is None:
        return judged(fault, f"clocks are held down: {name}", name, evidence=(evidence,), warns=True)
    return judged(fault, f"clocks held down: {name}", name, evidence=(evidence, lasting), fails=True)


@or_none
def _cool(read: GpuThermal | Missing) -> str | None:
    """``at 45 °C, far from 82 °C``; None where heat may be the reason. nvml.h names two more of a hardware
    slowdown: the power brake, and protection against power that is drawn too fast. T.Limit counts from the hottest
    sensor.
    """
    thermal = need(read)
    margin, limit = thermal.margin_c, thermal.slowdown_tlimit_c
    if isinstance(margin, int) and isinstance(limit, int):
        return f"at {margin - limit} °C below its threshold" if margin - limit >= _FAR_C else None
    sensors = ((thermal.gpu_c, thermal.slowdown_c), (thermal.memory_c, thermal.memory_max_c))
    far = all(_is_far(*sensor) for sensor in sensors)
    return f"at {need(thermal.gpu_c)} °C, far from {thermal.slowdown_c} °C" if far else None


def _is_far(now: int | Missing, limit: int | Missing) -> bool:
    """Is it so, or is there no such sensor, as no memory temperature of a P100?"""
    return isinstance(now, Missing) or (isinstance(limit, int) and now <= limit - _FAR_C)


def _before(box: Box, bdf: str) -> Judgement | None:
    """Of a slowdown that is over: by the time that the counters gave it between two readings."""
    for bit in (BRAKE, THERMAL):
        if (lost := _lasting(box, bdf, bit)) is not None:
            name, fault = HELD_BACK[bit]
            message = f"clocks were held down between two readings: {name}"
            return judged(fault, message, name, evidence=(lost,), warns=True)
    return None


def _lasting(box: Box, bdf: str, bit: int) -> Evidence | None:
    """Evidence that a slowdown lasts: the same reason in both readings, or time lost to heat; None if it need not."""
    if (both := both_counters(box, bdf)) is None:
        return None
    growth, old, new = both
    masks = masks_of(growth, old, new)
    if masks is not None and all(slowdown(mask) == bit for mask in masks):
        return asked_twice(old, new, "reasons_mask")
    # before R570 no counter has the time of the power brake: https://github.com/NVIDIA/NVSentinel/issues/1666
    for name in ("brake_ns",) if bit == BRAKE else ("thermal_ns", "sw_thermal_ns", "hw_thermal_ns"):
        lost = counter_growth(getattr(old, name), getattr(new, name))
        if isinstance(lost, int) and percent_of_time(lost, growth) > box.settings.limit("clock.throttle"):
            return asked_twice(old, new, name)
    return None


def _throttled_by(judgement: Judgement) -> str:
    if judgement.fault is Fault.CLOCKS_STUCK:
        return ""
    return "power supply" if judgement.fault in (Fault.POWER_BRAKE, Fault.POWER_VIOLATION) else "cooling"


_LOCKED = 0.9


def percent_of_time(nanoseconds: int, growth: Growth) -> float:
    """Percent of the time between two readings."""
    return round(nanoseconds / (growth.seconds * 1e7), 1) if growth.seconds > 0 else 0.0


def application(box: Box, clocks: GpuClocks) -> Judgement | Missing:
    """Warns if an application clock is below the GPU's own default, whatever other boards of the model have, and if a
    setting alone (0x2) holds a busy GPU in P0 more than 10 % below its application clock, or memory's clock in P0 is as
    far below its highest: locked clocks.

    Source: nvmlDeviceGetApplicationsClock against nvmlDeviceGetDefaultApplicationsClock; nvmlClocksEventReasons

    Application clocks against the GPU's own defaults, in MHz; and memory's clock in P0, which a setting alone holds
    below its highest.
    """
    if (memory := held_memory_clock(box, clocks)) is not None:
        message = f"memory clock held at {memory} MHz in P0, highest {clocks.max.memory} MHz"
        of_memory = (answered(memory, "nvmlDeviceGetClockInfo", clocks.bdf, 2),)
        return judged(Fault.CLOCKS_LOWERED, message, memory, need(clocks.max.memory), "MHz", of_memory, warns=True)
    low: list[str] = []
    evidence: list[Evidence] = []
    for number, kind in _KINDS:
        now, default = need(_of(clocks.application, kind)), need(_of(clocks.default_application, kind))
        current = answered(now, "nvmlDeviceGetApplicationsClock", clocks.bdf, number)
        preset = answered(default, "nvmlDeviceGetDefaultApplicationsClock", clocks.bdf, number)
        if now <= 0 or default <= 0:
            return Missing(Gap.GARBLED, (current if now <= 0 else preset).where, "a clock of 0 MHz is not valid")
        evidence += [current, preset]
        if now < default:
            low.append(f"{kind} {now} MHz, default {default} MHz")
    measured, expected = need(clocks.application.graphics), need(clocks.default_application.graphics)
    message = f"application clock {'; '.join(low)}" if low else f"application clock {measured} MHz"
    locked = None if low else _locked(box, clocks, measured)
    if locked is not None:
        how = "locked" if can_lock_clocks(box, clocks.bdf) else "held"
        message = f"clocks {how} at {locked} MHz under load, application clock {measured} MHz"
        evidence.append(answered(locked, "nvmlDeviceGetClockInfo", clocks.bdf, 0))
        measured, expected = locked, measured
    warns = bool(low) or locked is not None
    return judged(Fault.CLOCKS_LOWERED, message, measured, expected, "MHz", tuple(evidence), warns=warns)


@or_none
def held_memory_clock(box: Box, clocks: GpuClocks) -> int | None:
    """Memory's clock in P0, where it is locked: well below its highest, and no application clock says so.

    Less than half of it is a GPU that woke up between the two questions, unless all of several GPUs work and have it.
    """
    now, highest, application = need(clocks.current.memory), need(clocks.max.memory), clocks.application.memory
    target = highest if isinstance(application, Missing) else application
    if clocks.performance_state != 0 or now >= min(target, highest) * _LOCKED:
        return None
    every = rows(box.snapshot.gpu_clocks)
    at_work = (row.performance_state == 0 and row.current.memory == now and (known(_utilisation(box, row.bdf)) or 0) > 0
               for row in every)  # fmt: skip
    return now if now > highest / 2 or (len(every) > 1 and all(at_work)) else None


@or_gap
def _utilisation(box: Box, bdf: str) -> int:
    """Percent"""
    return need(need(box.gpu(bdf).processes).gpu_percent)


def _locked(box: Box, clocks: GpuClocks, application_mhz: int) -> int | None:
    """The clock that a setting alone holds below its application clock in a busy GPU in P0.

    None where that is not so; the rule ends where all is so, but whether the GPU is busy is not known.
    """
    reasons, now = clocks.reasons, clocks.current.graphics
    if isinstance(reasons, Missing) or isinstance(now, Missing) or clocks.performance_state != 0:
        return None
    if reasons.mask != BY_SETTING or now >= application_mhz * _LOCKED:
        return None
    return now if need(_utilisation(box, clocks.bdf)) > 0 else None


def _of(clocks: ClockPair | Clocks, kind: str) -> int | Missing:
    return clocks.graphics if kind == "graphics" else clocks.memory


def highest(box: Box, clocks: GpuClocks) -> Judgement:
    """Warns if the highest graphics or memory clock is below that of the model.

    Source: nvmlDeviceGetMaxClockInfo against the board's numbers

    The highest clocks against those of the model, in MHz.
    """
    board = box.board(box.at(clocks.bdf))
    numbers = {} if board is None else board.numbers
    limits = [(*each, numbers[key].value) for each in _KINDS if (key := f"max_{each[1]}_clock") in numbers]
    if board is None or not limits:
        return skip("no-reference", "the highest clocks of this model are not known")
    evidence: list[Evidence] = []
    low: list[str] = []
    measured: list[int] = []
    for number, kind, expected in limits:
        clock = need(_of(clocks.max, kind))
        measured.append(clock)
        evidence.append(answered(clock, "nvmlDeviceGetMaxClockInfo", clocks.bdf, number))
        if clock < expected:
            low.append(f"{kind} {clock} MHz, expected {expected:g} MHz ({board.name})")
    message = f"highest clock: {'; '.join(low)}" if low else f"highest {limits[0][1]} clock {measured[0]} MHz"
    return judged(Fault.CLOCKS_LIMITED, message, measured[0], limits[0][2], "MHz", tuple(evidence), warns=bool(low))


CHECKS = (
    Check("clock.throttle", per_gpu("gpu_clocks", _throttle),
        lambda box, at, judgement: (component_of(box, at, _throttled_by(judgement)),),
        lambda box, at, judgement: host_part(_throttled_by(judgement))),
    Check("clock.application", per_gpu("gpu_clocks", application), part("clock setting"),
        setting_of_all("clock setting")),
    Check("clock.max", per_gpu("gpu_clocks", highest), part("versions and settings"),
        setting_of_all("versions and settings")),
)  # fmt: skip
