"""Temperatures of GPUs, against their own limits and among GPUs of a model."""

from __future__ import annotations

from typing import Literal

from dgxcheck.checks.engine.box import Box, gpu_unavailable
from dgxcheck.checks.engine.check import Check, asked, host_if_all, part, per_gpu, per_listed_gpu, ruled
from dgxcheck.checks.engine.expected import has_problem, siblings
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, counted, judged, skip
from dgxcheck.checks.gpu.clocks import is_by_heat
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, need, or_gap, or_none
from dgxcheck.facts.nature import row
from dgxcheck.facts.nvml.readings import GpuClocks, GpuThermal
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import median
from dgxcheck.topology.model import Device


def temperature(box: Box, thermal: GpuThermal) -> Judgement | Missing:
    """Warns less than {thermal.margin} below the board's slowdown temperature, fails at it; warns from {thermal.hot} on
    where a text shows neither that nor a margin. Warns of fans at 0 % from {thermal.fans} on: they rest at idle alone.

    Source: nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN; nvmlDeviceGetFanSpeed

    The temperature against the board's slowdown temperature, in °C; and whether fans that it has stand still.
    """
    now = need(thermal.gpu_c)
    still = _stalled(box, thermal, now)
    if still is not None and isinstance(thermal.slowdown_c, Missing):
        return still
    most = box.settings.limit("thermal.hot")
    unshown = all(isinstance(fact, Missing) and fact.gap is Gap.UNRECORDED
                  for fact in (thermal.slowdown_c, thermal.margin_c))  # fmt: skip
    if unshown and now >= most and not _is_impossible(now):
        message = f"{now} °C, at which most data center boards slow down"
        return judged(Fault.OVERHEATING, message, now, most, "°C", asked(thermal, "gpu_c"), warns=True)
    slowdown, evidence = need(thermal.slowdown_c), asked(thermal, "gpu_c", "slowdown_c")
    message = f"{now} °C (slowdown at {slowdown} °C)"
    by_limit = _against_limit(box, message, now, slowdown, evidence, "slowdown temperature")
    return still if still is not None and not has_problem(by_limit) else by_limit


def _stalled(box: Box, thermal: GpuThermal, now: int) -> Judgement | None:
    """Fans that no speed is asked of at a temperature where those that rest at idle turn; None otherwise."""
    most = box.settings.limit("thermal.fans")
    if thermal.fan_percent != 0 or now < most or _is_impossible(now):
        return None
    evidence = asked(thermal, "gpu_c", "fan_percent")
    return judged(Fault.OVERHEATING, f"{now} °C and fans at 0 %", now, most, "°C", evidence, warns=True)


_IMPOSSIBLE = skip("dependency-failed", "an impossible temperature: see consistency.readings")


def _is_impossible(celsius: int) -> bool:
    return celsius > int(row(GpuThermal.gpu_c).more["high"])


def _against_limit(
    box: Box, message: str, now: int, most: int, evidence: tuple[Evidence, ...], noun: str
) -> Judgement | Missing:
    if most <= 0:
        return Missing(Gap.GARBLED, evidence[1].where, f"{most} °C is not a valid {noun}")
    if _is_impossible(now):
        return _IMPOSSIBLE
    near = now > most - box.settings.limit("thermal.margin")
    return judged(Fault.OVERHEATING, message, now, most, "°C", evidence, warns=near, fails=now >= most)


Sensor = Literal["gpu_c", "memory_c"]
_MIN_SIBLINGS = 2
"""Fewer GPUs in the same state make no median."""


def _margin(box: Box, thermal: GpuThermal) -> Judgement:
    """Warns less than {thermal.margin} above the margin at which the board slows down; fails at it if the driver
    reports a thermal slowdown too. Only for boards that report margins and no slowdown temperature, from Ada and Hopper
    on.

    Source: nvmlDeviceGetMarginTemperature, NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT
    """
    margin, at = need(thermal.margin_c), need(thermal.slowdown_tlimit_c)
    if not isinstance(thermal.slowdown_c, Missing):
        return skip("not-supported", "the board reports its slowdown temperature: see thermal.temperature")
    evidence = asked(thermal, "margin_c", "slowdown_tlimit_c")
    near = margin - at < box.settings.limit("thermal.margin")
    # some boards report margins of 0 and less while they are cool: the slowdown itself decides
    slow = _is_slowed(box.gpu(thermal.bdf).clocks)
    message = f"temperature margin {margin} °C (slowdown at {at} °C)"
    fails = margin <= at and slow is True
    return judged(Fault.OVERHEATING, message, margin, at, "°C", evidence, warns=near, fails=fails)


@or_none
def _is_slowed(clocks: GpuClocks | Missing) -> bool | None:
    return is_by_heat(need(need(clocks).reasons).mask)


def _memory(box: Box) -> Judged:
    """Warns if the memory is less than {thermal.margin} below its highest operating temperature, fails at it; below it,
    or where the board reports none, warns if it is at {thermal.warm} or more, and more than {thermal.outlier} above the
    median of the other GPUs of its model that are in the same P-state and draw the same power within
    {thermal.like-power}, or more than one that its heat has slowed.

    Source: NVML_FI_DEV_MEMORY_TEMP against NVML_TEMPERATURE_THRESHOLD_MEM_MAX, and among the GPUs of a model

    The memory against its own limit; below it, or where that is not known, against the memory of the siblings.
    """
    limits, compared = per_listed_gpu(_memory_limit)(box), _against_siblings(box, "memory_c")
    for (at, by_limit), (_, by_siblings) in zip(limits, compared, strict=True):
        passed = by_limit.status in (Status.PASS, Status.SKIP)
        yield at, by_siblings if passed and by_siblings.status is not Status.SKIP else by_limit


def _memory_limit(box: Box, gpu: Device) -> Judgement | Missing:
    thermal = need(box.gpu(gpu).thermal)
    now, most = need(thermal.memory_c), need(thermal.memory_max_c)
    evidence = asked(thermal, "memory_c", "memory_max_c")
    return _against_limit(box, f"memory {now} °C, limit {most} °C", now, most, evidence, "limit")


class _State(Record):
    """The temperature of a GPU, with what it is comparable by."""

    thermal: GpuThermal
    pstate: int
    power_mw: int
    temperature_c: int
    slowed: bool
    """By its heat; one that is not may only have ended its job."""


def _against_siblings(box: Box, sensor: Sensor) -> Judged:
    states = {gpu: gpu_unavailable(box, gpu) or _state(box, gpu, sensor) for gpu in box.topology.gpus}
    for gpu in box.gpus:
        others = [state for other in siblings(box, gpu) if isinstance(state := states[other], _State)]
        own = states[gpu]
        found = own if isinstance(own, Judgement) else ruled(_compare, box, sensor, own, others)
        if isinstance(own, _State) and found.fault is not Fault.HEAT_SINK and _is_hot(box, own.thermal):
            found = skip("dependency-failed", "see thermal.temperature")
        yield box.subject(gpu), found


def _is_hot(box: Box, thermal: GpuThermal) -> bool:
    return has_problem(ruled(temperature, box, thermal))


@or_gap
def _state(box: Box, gpu: Device, sensor: Sensor) -> _State | Judgement:
    view = box.gpu(gpu)
    thermal = need(view.thermal)
    temperature_c, pstate = need(getattr(thermal, sensor)), need(need(view.clocks).performance_state)
    power_mw, slowed = need(need(view.power).usage_mw), _is_slowed(view.clocks) is True
    if _is_impossible(temperature_c):
        return _IMPOSSIBLE
    return _State(thermal=thermal, pstate=pstate, power_mw=power_mw, temperature_c=temperature_c, slowed=slowed)


def _compare(box: Box, sensor: Sensor, state: _State | Missing, others: list[_State]) -> Judgement:
    own = need(state)
    tolerance = box.settings.limit("thermal.like-power") / 100
    beside = [other for other in others if other.pstate == own.pstate]
    alike = [
        other for other in beside
        if abs(other.power_mw - own.power_mw) <= tolerance * max(other.power_mw, own.power_mw)
        or (own.slowed and other.power_mw > own.power_mw)
    ]  # fmt: skip
    name = "memory " if sensor == "memory_c" else ""
    evidence = tuple(fact for state in (own, *alike) for fact in asked(state.thermal, sensor))
    if len(alike) < _MIN_SIBLINGS:
        message = f"only {counted(len(alike), 'other GPU')} in P{own.pstate} at similar power"
        return skip("no-reference", message, *evidence)
    usual = median(state.temperature_c for state in alike)
    warm = own.temperature_c >= box.settings.limit("thermal.warm")
    most = usual + box.settings.limit("thermal.outlier")
    hotter = warm and own.temperature_c > most
    fault = Fault.HEAT_SINK if all(state.temperature_c <= most for state in alike) else Fault.HOTTER
    more = " or more" if max(other.power_mw for other in alike) * (1 - tolerance) > own.power_mw else ""
    which = f"{len(alike)} other GPUs in P{own.pstate} at similar power{more}"
    message = f"{name}{own.temperature_c} °C, median {usual:g} °C of {which}"
    return judged(fault, message, own.temperature_c, usual, "°C", evidence, warns=hotter)


def _outlier(box: Box) -> Judged:
    """Warns if a GPU is at {thermal.warm} or more, and more than {thermal.outlier} above the median of the other GPUs
    of its model that are in the same P-state and draw the same power within {thermal.like-power}, or more than one that
    its heat has slowed.

    Source: nvmlDeviceGetTemperature, GetPerformanceState and GetPowerUsage of all GPUs
    """
    return _against_siblings(box, "gpu_c")


CHECKS = (
    Check("thermal.temperature", per_gpu("gpu_thermal", temperature), part("cooling"), host_if_all("cooling")),
    Check("thermal.margin", per_gpu("gpu_thermal", _margin), part("cooling"), host_if_all("cooling")),
    Check("thermal.memory", _memory, part("cooling"), host_if_all("cooling")),
    Check("thermal.outlier", _outlier, part("cooling"), host_if_all("cooling")),
)  # fmt: skip
