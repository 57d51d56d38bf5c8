"""Power limit and temperature of each GPU."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, answered
from dgxcheck.checks.engine.per_gpu import per_gpu
from dgxcheck.facts.gpu import GpuPower, GpuThermal
from dgxcheck.facts.missing import Gap, Missing


def power_limit(_: Box, power: GpuPower) -> Judgement | Missing:
    """The enforced power limit against the board's default."""
    limit, default = power.enforced_limit_mw, power.default_limit_mw
    if isinstance(limit, Missing):
        return limit
    if isinstance(default, Missing):
        return default
    evidence = (
        answered(limit, "nvmlDeviceGetEnforcedPowerLimit", power.bdf),
        answered(default, "nvmlDeviceGetPowerManagementDefaultLimit", power.bdf),
    )
    if limit <= 0 or default <= 0:
        return Missing(Gap.GARBLED, evidence[0 if limit <= 0 else 1].where, "a power limit of 0 W is none")
    status = Status.WARN if limit < default else Status.PASS
    message = f"power limit {limit / 1000:g} W, default {default / 1000:g} W"
    return Judgement(status, message, limit / 1000, default / 1000, "W", evidence)


def temperature(box: Box, thermal: GpuThermal) -> Judgement | Missing:
    """The temperature against the board's slowdown temperature."""
    now, slowdown = thermal.gpu_c, thermal.slowdown_c
    if isinstance(now, Missing):
        return now
    if isinstance(slowdown, Missing):
        return slowdown
    evidence = (
        answered(now, "nvmlDeviceGetTemperature", thermal.bdf, 0),
        answered(slowdown, "nvmlDeviceGetTemperatureThreshold", thermal.bdf, 1),
    )
    if slowdown <= 0:
        return Missing(Gap.GARBLED, evidence[1].where, f"{slowdown} C is no slowdown temperature")
    status = (
        Status.FAIL
        if now >= slowdown
        else Status.WARN
        if now > slowdown - box.settings.limit("thermal.margin")
        else Status.PASS
    )
    return Judgement(status, f"{now} C, slowdown at {slowdown} C", now, slowdown, "C", evidence)


CHECKS = (
    Check(
        id="power.limit",
        rule="Warns where the enforced power limit is below the board's default.",
        source="nvmlDeviceGetEnforcedPowerLimit against nvmlDeviceGetPowerManagementDefaultLimit",
        remedy="if nobody meant it: nvidia-smi -i GPU -pl WATT with the default; else check power cables and supplies",
        judge=per_gpu("gpu_power", power_limit),
    ),
    Check(
        id="thermal.temperature",
        rule="Warns less than {thermal.margin} below the board's slowdown temperature, fails at it.",
        source="nvmlDeviceGetTemperatureThreshold, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN",
        remedy="check airflow, fans, water loop and room temperature; compare with the neighbours",
        judge=per_gpu("gpu_thermal", temperature),
    ),
)
