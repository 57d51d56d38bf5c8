"""Power limit and temperature of each GPU."""

from __future__ import annotations

from dgxcheck.checks.engine.blame import host_if_all, part, setting_of_all
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Judgement, Status, answered
from dgxcheck.checks.engine.per_gpu import per_gpu
from dgxcheck.facts.gpu import GpuPower, GpuThermal
from dgxcheck.facts.missing import Gap, Missing, need


def power_limit(_: Box, power: GpuPower) -> Judgement | Missing:
    """The enforced power limit against the board's default, in W; of a text without it the one that is set."""
    enforced, function = power.enforced_limit_mw, "nvmlDeviceGetEnforcedPowerLimit"
    if isinstance(enforced, Missing) and enforced.gap is Gap.UNRECORDED and not isinstance(power.limit_mw, Missing):
        enforced, function = power.limit_mw, "nvmlDeviceGetPowerManagementLimit"
    limit, default = need(enforced), need(power.default_limit_mw)
    evidence = (
        answered(limit, function, power.bdf),
        answered(default, "nvmlDeviceGetPowerManagementDefaultLimit", power.bdf),
    )
    if limit <= 0 or default <= 0:
        return Missing(Gap.GARBLED, evidence[0 if limit <= 0 else 1].where, "a power limit of 0 W is not valid")
    status, fault = (Status.WARN, Fault.POWER_CAPPED) if limit < default else (Status.PASS, None)
    message = f"power limit {limit / 1000:g} W, default {default / 1000:g} W"
    return Judgement(status, message, limit / 1000, default / 1000, "W", evidence, fault=fault)


def temperature(box: Box, thermal: GpuThermal) -> Judgement | Missing:
    """The temperature against the board's slowdown temperature, in °C."""
    now, slowdown = need(thermal.gpu_c), need(thermal.slowdown_c)
    evidence = (
        answered(now, "nvmlDeviceGetTemperature", thermal.bdf, 0),
        answered(slowdown, "nvmlDeviceGetTemperatureThreshold", thermal.bdf, 1),
    )
    if slowdown <= 0:
        return Missing(Gap.GARBLED, evidence[1].where, f"{slowdown} °C is not a valid slowdown temperature")
    near = now > slowdown - box.settings.limit("thermal.margin")
    status = Status.FAIL if now >= slowdown else Status.WARN if near else Status.PASS
    fault = None if status is Status.PASS else Fault.OVERHEATING
    return Judgement(status, f"{now} °C, slowdown at {slowdown} °C", now, slowdown, "°C", evidence, fault=fault)


COOLING = (
    "check fans, filters and inlet air, of liquid-cooled machines pump, coolant level and radiator; compare with the"
    " other GPUs"
)
CHECKS = (
    Check(
        id="power.limit",
        rule="Warns if the enforced power limit is below the board's default.",
        source="nvmlDeviceGetEnforcedPowerLimit against nvmlDeviceGetPowerManagementDefaultLimit",
        remedy="if this was not intended, run nvidia-smi -i BDF -pl WATT with the default limit; otherwise check power"
        " cables and power supplies",
        judge=per_gpu("gpu_power", power_limit),
        blames=part("power limit"),
        shared=setting_of_all("power limit"),
    ),
    Check(
        id="thermal.temperature",
        rule="Warns less than {thermal.margin} below the board's slowdown temperature, fails at it.",
        source="nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN",
        remedy=COOLING,
        judge=per_gpu("gpu_thermal", temperature),
        blames=part("cooling"),
        shared=host_if_all("cooling"),
    ),
)
