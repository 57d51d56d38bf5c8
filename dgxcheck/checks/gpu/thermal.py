"""Temperature margins, and one hot GPU among cooler ones."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from dgxcheck.checks.engine.blame import host_if_all, part
from dgxcheck.checks.engine.box import Box, gpu_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.per_gpu import NeededFact, need, per_gpu, ruled
from dgxcheck.checks.engine.siblings import has_problem, siblings
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.gpu.limits import COOLING, temperature
from dgxcheck.facts.gpu import GpuThermal
from dgxcheck.facts.ids import TLIMITS
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device

_SLOWDOWN_TLIMIT = TLIMITS[1]
_MIN_SIBLINGS = 2
"""Fewer GPUs in the same state make no median."""


def _margin(box: Box, thermal: GpuThermal) -> Judgement:
    margin, slowdown = need(thermal.margin_c), need(thermal.slowdown_tlimit_c)
    if not isinstance(thermal.slowdown_c, Missing):
        return skip("not-supported", "the board reports its slowdown temperature: see thermal.temperature")
    evidence = (
        answered(margin, "nvmlDeviceGetMarginTemperature", thermal.bdf),
        answered(slowdown, "nvmlDeviceGetFieldValues", thermal.bdf, _SLOWDOWN_TLIMIT),
    )
    near = margin - slowdown < box.settings.limit("thermal.margin")
    status, fault = (Status.WARN, Fault.OVERHEATING) if near else (Status.PASS, None)
    message = f"temperature margin {margin} °C, slowdown at {slowdown} °C"
    return Judgement(status, message, margin, slowdown, "°C", evidence, fault=fault)


class _State(Record):
    """The temperature of a GPU, with what it is comparable by."""

    bdf: str
    pstate: int
    power_mw: int
    temperature_c: int


def _outlier(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    states = {gpu: gpu_unavailable(box, gpu) or _state(box, gpu) for gpu in box.topology.gpus}
    for gpu in box.gpus:
        own = states[gpu]
        others = [state for other in siblings(box, gpu) if isinstance(state := states[other], _State)]
        yield box.subject(gpu), own if isinstance(own, Judgement) else _compare(box, own, others)


def _state(box: Box, gpu: Device) -> _State | Judgement:
    view = box.gpu(gpu)
    try:
        thermal = need(view.thermal)
        temperature_c, pstate = need(thermal.gpu_c), need(need(view.clocks).performance_state)
        power_mw = need(need(view.power).usage_mw)
    except NeededFact as needed:
        return unjudged(needed.gap)
    if has_problem(ruled(temperature, box, thermal)):
        return skip("dependency-failed", "see thermal.temperature")
    return _State(bdf=thermal.bdf, pstate=pstate, power_mw=power_mw, temperature_c=temperature_c)


def _compare(box: Box, own: _State, others: list[_State]) -> Judgement:
    tolerance = box.settings.limit("thermal.like-power") / 100
    alike = [
        other
        for other in others
        if other.pstate == own.pstate
        and abs(other.power_mw - own.power_mw) <= tolerance * max(other.power_mw, own.power_mw)
    ]
    evidence = tuple(answered(state.temperature_c, "nvmlDeviceGetTemperature", state.bdf, 0) for state in (own, *alike))
    if len(alike) < _MIN_SIBLINGS:
        message = f"only {counted(len(alike), 'other GPU')} in P{own.pstate} at similar power"
        return skip("no-reference", message, *evidence)
    usual = median(state.temperature_c for state in alike)
    hotter = own.temperature_c - usual > box.settings.limit("thermal.outlier")
    status, fault = (Status.WARN, Fault.HOTTER) if hotter else (Status.PASS, None)
    message = f"{own.temperature_c} °C; {len(alike)} other GPUs in P{own.pstate} at similar power: median {usual:g} °C"
    return Judgement(status, message, own.temperature_c, usual, "°C", evidence, fault=fault)


CHECKS = (
    Check(
        id="thermal.margin",
        rule="Warns less than {thermal.margin} above the margin at which the board slows down. Only for boards that"
        " report margins and no slowdown temperature, from Hopper on.",
        source="nvmlDeviceGetMarginTemperature, NVML_FI_DEV_TEMPERATURE_SLOWDOWN_TLIMIT",
        remedy=COOLING,
        judge=per_gpu("gpu_thermal", _margin),
        blames=part("cooling"),
        shared=host_if_all("cooling"),
    ),
    Check(
        id="thermal.outlier",
        rule="Warns if a GPU is more than {thermal.outlier} above the median of the other GPUs of its model that are in"
        " the same P-state and draw the same power within {thermal.like-power}.",
        source="nvmlDeviceGetTemperature, GetPerformanceState and GetPowerUsage of all GPUs",
        remedy="check this GPU's heat sink, fan and airflow; PCIe card: clean and reseat it; SXM or liquid-cooled:"
        " call the vendor",
        judge=_outlier,
        blames=part("cooling"),
        shared=host_if_all("cooling"),
    ),
)
