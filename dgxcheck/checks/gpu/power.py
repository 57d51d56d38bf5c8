"""Power limits of GPUs, and clocks held down by lack of power."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import (
    Check,
    asked,
    asked_twice,
    component_of,
    host_if_all,
    part,
    per_gpu,
    per_listed_gpu,
    remedy_of,
)
from dgxcheck.checks.engine.finding import Judgement, given, judged, skip
from dgxcheck.checks.engine.growth import COUNTER_RESET, NO_EARLIER_READING, counter_growth, new_events
from dgxcheck.checks.gpu.beside_siblings import POWER_CAP
from dgxcheck.checks.gpu.clocks import BRAKE, percent_of_time
from dgxcheck.components.device_facts import GpuView
from dgxcheck.components.locate import all_gpus
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Gap, Missing, known, need
from dgxcheck.facts.nvml.readings import GpuCounters, GpuPower
from dgxcheck.topology.model import Device

_ROUNDED_MW = 1000
"""Limits are set in whole W (nvidia-smi -pl)."""
_AT_LIMIT = 0.95
"""From this part of its power limit on, a GPU draws as much as it may."""


_AS_DEFAULT = 0.8
"""A limit without the default may be the default of its machine: 69 % of the model's in a DGX Station A100."""


def limit(box: Box, power: GpuPower) -> Judgement | Missing:
    """Warns if the enforced power limit is below the board's default, and if that is below the default of its model by
    more than {power.limit}: makers of machines choose lower ones. Where a text does not show the default, warns
    of a limit below 80 % of the lowest one.

    Source: nvmlDeviceGetEnforcedPowerLimit against nvmlDeviceGetPowerManagementDefaultLimit, and that against the
    board's number

    The enforced power limit against the board's default, in W; of a text without it the one that is set. The default
    itself against that of the model; in a text without it the limit.
    """
    enforced, name = power.enforced_limit_mw, "enforced_limit_mw"
    if isinstance(enforced, Missing) and enforced.gap is Gap.UNRECORDED and not isinstance(power.limit_mw, Missing):
        enforced, name = power.limit_mw, "limit_mw"
    board = box.board(box.at(power.bdf))
    usual = None if board is None else board.numbers.get("power_limit")
    of_model = "" if board is None or usual is None else f"{usual.value:g} W of this model ({board.name})"
    least = 0.0 if usual is None else usual.value * 1000 * (100 - box.settings.limit("power.limit")) / 100
    limit, default, evidence = need(enforced), power.default_limit_mw, asked(power, name)
    if usual is not None and isinstance(default, Missing) and default.gap is Gap.UNRECORDED and limit > 0:
        message = f"power limit {limit / 1000:g} W, {of_model}"
        lowered = limit < least * _AS_DEFAULT
        return judged(Fault.POWER_CAPPED, message, limit / 1000, usual.value, "W", evidence, warns=lowered)
    default, evidence = need(default), asked(power, name, "default_limit_mw")
    if limit <= 0 or default <= 0:
        return Missing(Gap.GARBLED, evidence[0 if limit <= 0 else 1].where, "a power limit of 0 W is not valid")
    message = f"power limit {limit / 1000:g} W, default {default / 1000:g} W"
    low, remedy = default - limit >= _ROUNDED_MW, ""
    if low and isinstance(power.limit_mw, int) and power.limit_mw >= default:
        message, remedy = f"{message}, which is set: another limit applies", remedy_of("power.limit", "another limit")
    watts = (limit / 1000, default / 1000, "W")
    if not low and usual is not None and default < least:
        message, figures = f"default power limit {default / 1000:g} W, {of_model}", (default / 1000, usual.value, "W")
        remedy = remedy_of("power.limit", "of the board")
        return judged(Fault.POWER_LIMITED, message, *figures, evidence, warns=True, remedy=remedy)
    return judged(Fault.POWER_CAPPED, message, *watts, evidence, warns=low, remedy=remedy)


def _limited_by(judgement: Judgement) -> str:
    return "versions and settings" if judgement.fault is Fault.POWER_LIMITED else "power limit"


def violation(box: Box, gpu: Device) -> Judgement:
    """Warns if lack of power held the clocks of a GPU down for more than {power.violation} of the time between two
    readings and its power limit does not explain that: it drew less on average than its limit would be in that part of
    the time, or the power brake took as much of it; where its energy is not counted, if it draws less than its limit
    now. At the limit this is normal under load.

    Source: nvmlDeviceGetViolationStatus, NVML_PERF_POLICY_POWER, which counts the power cap;
    nvmlDeviceGetTotalEnergyConsumption; any growth at all is noise: https://github.com/NVIDIA/DCGM/issues/285

    The time that NVML counts for the power cap, which is no fault by itself: did the GPU draw its limit?
    """
    growth = given(box.growth)
    new = need(GpuView(growth.new, gpu.bdf).counters)
    old = given(known(GpuView(growth.old, gpu.bdf).counters) or NO_EARLIER_READING)
    share = percent_of_time(new_events(old.power_ns, new.power_ns), growth)
    if growth.seconds <= 0:
        return skip("no-history", "no time passed between the two readings")
    most = box.settings.limit("power.violation")
    evidence = [asked_twice(old, new, "power_ns")]
    message = f"clocks held down by lack of power {share:g} % of the time ({growth.how})"
    if share <= most:
        return judged(Fault.POWER_VIOLATION, message, share, most, "%", tuple(evidence))
    drawn = counter_growth(old.energy_mj, new.energy_mj)
    if drawn is None:
        return COUNTER_RESET
    power = need(box.gpu(new.bdf).power)
    if isinstance(drawn, int):
        allowed, mean = need(power.enforced_limit_mw), drawn / growth.seconds
        evidence.append(asked_twice(old, new, "energy_mj"))
        message = f"{message}: {mean / 1000:.0f} W on average, power limit {allowed / 1000:g} W"
        short = mean < share / 100 * allowed * _AT_LIMIT or _is_braked(old, new, growth, most)
    else:
        short = not _at_limit(power)
        if short and not need(new.reasons_mask) & (POWER_CAP | BRAKE):
            return skip("no-history", f"{message}; what it drew meanwhile is not known", *evidence)
    explained = "" if short else ", as its power limit allows"
    return judged(Fault.POWER_VIOLATION, f"{message}{explained}", share, most, "%", tuple(evidence), warns=short)


def _is_braked(old: GpuCounters, new: GpuCounters, growth: Growth, most: float) -> bool:
    """Is it the power brake that holds the clocks down: now, or for more than ``most`` percent of the time?"""
    if isinstance(new.reasons_mask, int) and new.reasons_mask & BRAKE:
        return True
    braked = counter_growth(old.brake_ns, new.brake_ns)
    return isinstance(braked, int) and percent_of_time(braked, growth) > most


def _at_limit(power: GpuPower) -> bool:
    """Does the GPU draw as much as its power limit allows, now?"""
    draw, allowed = power.usage_mw, power.enforced_limit_mw
    return isinstance(draw, int) and isinstance(allowed, int) and draw >= allowed * _AT_LIMIT


CHECKS = (
    Check("power.violation", per_listed_gpu(violation), part("power supply"), host_if_all("power supply"),
        counters=True),
    Check("power.limit", per_gpu("gpu_power", limit),
        lambda box, at, judgement: (component_of(box, at, _limited_by(judgement)),),
        lambda box, at, judgement: all_gpus(box, _limited_by(judgement))),
)  # fmt: skip
