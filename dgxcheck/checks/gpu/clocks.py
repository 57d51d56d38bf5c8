"""What a GPU's clocks are set to, and what holds them down."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box, Growth, row_of
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.growth import COUNTER_RESET, counter_growth, per_gpu_growth
from dgxcheck.checks.engine.per_gpu import per_gpu
from dgxcheck.facts.gpu import ClockPair, Clocks, GpuClocks, GpuCounters, GpuPower
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.profiles.model import Board

BRAKE, THERMAL, SLOWDOWN, SOFTWARE = 0x80, 0x40, 0x8, 0x20
HELD_BACK = {
    BRAKE: "power brake",
    THERMAL: "hardware thermal slowdown",
    SLOWDOWN: "hardware slowdown",
    SOFTWARE: "software thermal slowdown",
}
"""Bits of ``nvmlClocksEventReasons``; 0x8 is set along with 0x40 and 0x80."""
SOON_S = 600.0
"""Two readings further apart say nothing of the time between them."""
AT_LIMIT = 0.95
"""Part of the power limit from which on a GPU draws what it may."""
_POWER, _THERMAL = 0, 1  # nvmlPerfPolicyType_t
_KINDS = ((0, "graphics"), (2, "memory"))  # nvmlClockType_t


def slowdown(mask: int) -> int:
    """The bit that says most about why clocks are held down; 0 where none does."""
    return next((bit for bit in HELD_BACK if mask & bit), 0)


def _throttle(box: Box, clocks: GpuClocks) -> Judgement | Missing:
    reasons = clocks.reasons
    if isinstance(reasons, Missing):
        return reasons
    evidence = answered(reasons.mask, "nvmlDeviceGetCurrentClocksEventReasons", clocks.bdf)
    bit = slowdown(reasons.mask)
    if not bit:
        return Judgement(Status.PASS, "no slowdown", evidence=(evidence,))
    name = HELD_BACK[bit]
    held = _held(box, clocks.bdf, bit)
    if held is None:
        return Judgement(Status.WARN, f"clocks are held down now: {name}", name, evidence=(evidence,))
    return Judgement(Status.FAIL, f"clocks stay held down: {name}", name, evidence=(evidence, held))


def _held(box: Box, bdf: str, bit: int) -> Evidence | None:
    """What a second reading has of the same slowdown: the same reason soon after, or time lost to heat."""
    growth = box.growth
    if isinstance(growth, Judgement):
        return None
    old, new = (row_of(snapshot.gpu_counters, bdf) for snapshot in (growth.old, growth.new))
    if not isinstance(old, GpuCounters) or not isinstance(new, GpuCounters):
        return None
    masks = (old.reasons_mask, new.reasons_mask)
    if growth.seconds <= SOON_S and all(isinstance(mask, int) and slowdown(mask) == bit for mask in masks):
        twice: list[Json] = [said(mask) for mask in masks]
        return answered(twice, "nvmlDeviceGetCurrentClocksEventReasons", bdf)
    lost = counter_growth(old.thermal_ns, new.thermal_ns)
    # the time of the power brake is in no counter: https://github.com/NVIDIA/NVSentinel/issues/1666
    if bit == BRAKE or not isinstance(lost, int) or _share(lost, growth) <= box.settings.limit("clock.throttle"):
        return None
    counted: list[Json] = [said(old.thermal_ns), said(new.thermal_ns)]
    return answered(counted, "nvmlDeviceGetViolationStatus", bdf, _THERMAL)


def _share(nanoseconds: int, growth: Growth) -> float:
    """Percent of the time between two readings."""
    return round(nanoseconds / (growth.seconds * 1e7), 1) if growth.seconds > 0 else 0.0


def application(_: Box, clocks: GpuClocks) -> Judgement | Missing:
    """Application clocks against the GPU's own defaults."""
    low: list[str] = []
    evidence: list[Evidence] = []
    for number, kind in _KINDS:
        now, default = _of(clocks.application, kind), _of(clocks.default_application, kind)
        asked = answered(said(now), "nvmlDeviceGetApplicationsClock", clocks.bdf, number)
        preset = answered(said(default), "nvmlDeviceGetDefaultApplicationsClock", clocks.bdf, number)
        if isinstance(now, Missing):
            return now
        if isinstance(default, Missing):
            return default
        if now <= 0 or default <= 0:
            return Missing(Gap.GARBLED, (asked if now <= 0 else preset).where, "a clock of 0 MHz is none")
        evidence += [asked, preset]
        if now < default:
            low.append(f"{kind} {now} MHz, default {default} MHz")
    graphics, preset_to = clocks.application.graphics, clocks.default_application.graphics
    measured, due = (None if isinstance(each, Missing) else each for each in (graphics, preset_to))
    told = f"application clock below its default: {'; '.join(low)}" if low else f"application clock {measured} MHz"
    return Judgement(Status.WARN if low else Status.PASS, told, measured, due, "MHz", tuple(evidence))


def _of(clocks: ClockPair | Clocks, kind: str) -> int | Missing:
    return clocks.graphics if kind == "graphics" else clocks.memory


def said(value: int | Missing) -> Json:
    """A number, or why there is none, as evidence has it."""
    return value.reason if isinstance(value, Missing) else value


def highest(box: Box, clocks: GpuClocks) -> Judgement | Missing:
    """The highest clocks against those of the model."""
    gpu = next(each for each in box.topology.gpus if each.bdf == clocks.bdf)
    board = box.board(gpu)
    due = [*_due(board)] if board is not None else []
    if board is None or not due:
        return skip("no-reference", "the highest clocks of this model are not known")
    evidence: list[Evidence] = []
    low: list[str] = []
    measured: list[int] = []
    for number, kind, expected in due:
        most = _of(clocks.max, kind)
        if isinstance(most, Missing):
            return most
        measured.append(most)
        evidence.append(answered(most, "nvmlDeviceGetMaxClockInfo", clocks.bdf, number))
        if most < expected:
            low.append(f"{kind} {most} MHz, {board.name} has {expected:g} MHz")
    status = Status.WARN if low else Status.PASS
    message = f"highest clock: {'; '.join(low)}" if low else f"highest {due[0][1]} clock {measured[0]} MHz"
    return Judgement(status, message, measured[0], due[0][2], "MHz", tuple(evidence))


def _due(board: Board) -> Iterator[tuple[int, str, int | float]]:
    for number, kind in _KINDS:
        known = board.numbers.get(f"max_{kind}_clock")
        if known is not None:
            yield number, kind, known.value


def _violations(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    def rule(growth: Growth, old: GpuCounters, new: GpuCounters) -> Judgement | Missing:
        lost = counter_growth(old.power_ns, new.power_ns)
        if lost is None:
            return COUNTER_RESET
        if isinstance(lost, Missing):
            return lost
        if growth.seconds <= 0:
            return skip("no-history", "no time passed between the two readings")
        most = box.settings.limit("power.violation")
        share = _share(lost, growth)
        counted: list[Json] = [said(old.power_ns), said(new.power_ns)]
        evidence = (answered(counted, "nvmlDeviceGetViolationStatus", new.bdf, _POWER),)
        message = f"time below the wanted clocks for want of power: {share:g} % ({growth.how})"
        if share > most and _at_limit(box, new.bdf):
            return Judgement(Status.PASS, f"{message}, at its power limit", share, most, "%", evidence)
        return Judgement(Status.WARN if share > most else Status.PASS, message, share, most, "%", evidence)

    yield from per_gpu_growth("gpu_counters", rule)(box)


def _at_limit(box: Box, bdf: str) -> bool:
    """Does the GPU draw what it may? Then a power limit does what it is for."""
    power = row_of(box.snapshot.gpu_power, bdf)
    if not isinstance(power, GpuPower):
        return False
    draw, limit = power.usage_mw, power.enforced_limit_mw
    return isinstance(draw, int) and isinstance(limit, int) and draw >= limit * AT_LIMIT


CHECKS = (
    Check(
        id="clock.throttle",
        rule="Warns where the clocks are held down by the power brake (0x80), a hardware slowdown (0x8, 0x40) or"
        " software thermal slowdown (0x20) at the time of asking; fails where two readings within ten minutes have"
        " the same reason, or more than {clock.throttle} of the time between two readings was lost to heat. Idle, power"
        " cap and set clocks are no faults.",
        source="nvmlClocksEventReasons in nvml.h; nvmlDeviceGetViolationStatus",
        remedy="look at temperature, airflow and power supply; if it stays, collect nvidia-bug-report.sh",
        judge=per_gpu("gpu_clocks", _throttle),
    ),
    Check(
        id="clock.application",
        rule="Warns where an application clock is below the GPU's own default; what other boards of the model have"
        " does not count.",
        source="nvmlDeviceGetApplicationsClock against nvmlDeviceGetDefaultApplicationsClock",
        remedy="if nobody meant it: nvidia-smi -i GPU -rac",
        judge=per_gpu("gpu_clocks", application),
    ),
    Check(
        id="clock.max",
        rule="Warns where the highest graphics or memory clock is below that of the model.",
        source="nvmlDeviceGetMaxClockInfo against the board's numbers",
        remedy="compare the VBIOS with the neighbours'; if it is another, ask the vendor for the right one",
        judge=per_gpu("gpu_clocks", highest),
    ),
    Check(
        id="power.violation",
        rule="Warns where a GPU spent more than {power.violation} of the time between two readings below the wanted"
        " clocks for want of power, though it draws less than it may: at its limit a GPU under load is where it should"
        " be.",
        source="nvmlDeviceGetViolationStatus, NVML_PERF_POLICY_POWER; any growth at all is noise:"
        " https://github.com/NVIDIA/DCGM/issues/285",
        remedy="compare power limit and draw with the neighbours; check power cables and supplies",
        judge=_violations,
    ),
)
