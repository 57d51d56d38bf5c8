"""Temperatures that no threshold of the board tells: margins, and one hot GPU among cool ones."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from dgxcheck.checks.engine.box import Box, gpu_unavailable, row_of
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.per_gpu import per_gpu
from dgxcheck.checks.engine.siblings import has_problem, siblings
from dgxcheck.checks.gpu.limits import temperature
from dgxcheck.facts.gpu import GpuClocks, GpuPower, GpuThermal
from dgxcheck.facts.ids import TLIMITS
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record

_SLOWDOWN_TLIMIT = TLIMITS[1]
_FEWEST = 2
"""Neighbours in the same state without which there is no median to speak of."""


def _margin(box: Box, thermal: GpuThermal) -> Judgement | Missing:
    left, slowdown = thermal.margin_c, thermal.slowdown_tlimit_c
    if isinstance(left, Missing):
        return left
    if isinstance(slowdown, Missing):
        return slowdown
    if not isinstance(thermal.slowdown_c, Missing):
        return skip("not-supported", "the board tells its slowdown temperature, which thermal.temperature judges")
    evidence = (
        answered(left, "nvmlDeviceGetMarginTemperature", thermal.bdf),
        answered(slowdown, "nvmlDeviceGetFieldValues", thermal.bdf, _SLOWDOWN_TLIMIT),
    )
    due = box.settings.limit("thermal.margin")
    status = Status.WARN if left - slowdown < due else Status.PASS
    message = f"margin {left} C, slowdown at a margin of {slowdown} C"
    return Judgement(status, message, left, slowdown, "C", evidence)


class _State(Record):
    """What makes two GPUs comparable, and how hot one is."""

    bdf: str
    pstate: int
    power_mw: int
    celsius: int


def _outlier(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    states = {gpu.name: gpu_unavailable(box, gpu) or _state(box, gpu.bdf) for gpu in box.topology.gpus}
    for gpu in box.gpus:
        own = states[gpu.name]
        if isinstance(own, Judgement):
            yield box.subject(gpu), own
            continue
        others = [state for other in siblings(box, gpu) if isinstance(state := states[other.name], _State)]
        yield box.subject(gpu), _compared(box, own, others)


def _state(box: Box, bdf: str | None) -> _State | Judgement:
    now = box.snapshot
    thermal, clocks, power = (row_of(rows, bdf) for rows in (now.gpu_thermal, now.gpu_clocks, now.gpu_power))
    if not isinstance(thermal, GpuThermal):
        return _unread(thermal)
    if not isinstance(clocks, GpuClocks):
        return _unread(clocks)
    if not isinstance(power, GpuPower):
        return _unread(power)
    celsius, pstate, milliwatts = thermal.gpu_c, clocks.performance_state, power.usage_mw
    if isinstance(celsius, Missing):
        return unjudged(celsius)
    if isinstance(pstate, Missing):
        return unjudged(pstate)
    if isinstance(milliwatts, Missing):
        return unjudged(milliwatts)
    if has_problem(temperature(box, thermal)):
        return skip("dependency-failed", "thermal.temperature tells of this GPU")
    return _State(bdf=thermal.bdf, pstate=pstate, power_mw=milliwatts, celsius=celsius)


def _unread(row: Judgement | Missing) -> Judgement:
    return unjudged(row) if isinstance(row, Missing) else row


def _compared(box: Box, own: _State, others: list[_State]) -> Judgement:
    share = box.settings.limit("thermal.like-power") / 100
    alike = [
        other
        for other in others
        if other.pstate == own.pstate
        and abs(other.power_mw - own.power_mw) <= share * max(other.power_mw, own.power_mw)
    ]
    evidence = tuple(answered(each.celsius, "nvmlDeviceGetTemperature", each.bdf, 0) for each in (own, *alike))
    if len(alike) < _FEWEST:
        return skip("no-reference", f"GPUs in P{own.pstate} at like power: {len(alike)}", *evidence)
    usual = median(each.celsius for each in alike)
    status = Status.WARN if own.celsius - usual > box.settings.limit("thermal.outlier") else Status.PASS
    message = f"{own.celsius} C, {len(alike)} others in P{own.pstate} at like power {usual:g} C"
    return Judgement(status, message, own.celsius, usual, "C", evidence)


CHECKS = (
    Check(
        id="thermal.margin",
        rule="Warns less than {thermal.margin} above the margin at which the board slows down; only boards that tell"
        " margins and no slowdown temperature, from Hopper on.",
        source="nvmlDeviceGetMarginTemperature, NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT",
        remedy="check airflow, fans, water loop and room temperature; compare with the neighbours",
        judge=per_gpu("gpu_thermal", _margin),
    ),
    Check(
        id="thermal.outlier",
        rule="Warns where a GPU is more than {thermal.outlier} above the median of the others of its model that are in"
        " the same P-state and draw the same power within {thermal.like-power}.",
        source="nvmlDeviceGetTemperature, GetPerformanceState and GetPowerUsage of all GPUs",
        remedy="check this GPU's heat sink, fan and airflow; reseat it or renew its thermal paste",
        judge=_outlier,
    ),
)
