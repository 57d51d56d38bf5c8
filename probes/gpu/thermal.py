"""A GPU's temperatures, their thresholds and its fan."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuThermal
from dgxcheck.facts.ids import MEMORY_TEMPERATURE, TLIMITS
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.gpu.listing import each
from probes.gpu.values import number


def probe(source: Source) -> tuple[GpuThermal, ...] | Missing:
    """``nvmlDeviceGetTemperature``, ``GetTemperatureThreshold``, ``GetFieldValues`` and ``GetFanSpeed``."""
    return each(source, _thermal)


def _thermal(source: Source, bdf: str) -> GpuThermal:
    shutdown, slowdown, memory_max, gpu_max = (
        _celsius(source, "nvmlDeviceGetTemperatureThreshold", bdf, threshold) for threshold in range(4)
    )
    shutdown_tlimit, slowdown_tlimit, memory_max_tlimit, gpu_max_tlimit = (
        _celsius(source, "nvmlDeviceGetFieldValues", bdf, field) for field in TLIMITS
    )
    return GpuThermal(
        bdf=bdf,
        gpu_c=_celsius(source, "nvmlDeviceGetTemperature", bdf, 0),
        memory_c=_celsius(source, "nvmlDeviceGetFieldValues", bdf, MEMORY_TEMPERATURE),
        shutdown_c=shutdown,
        slowdown_c=slowdown,
        memory_max_c=memory_max,
        gpu_max_c=gpu_max,
        margin_c=_celsius(source, "nvmlDeviceGetMarginTemperature", bdf),
        shutdown_tlimit_c=shutdown_tlimit,
        slowdown_tlimit_c=slowdown_tlimit,
        memory_max_tlimit_c=memory_max_tlimit,
        gpu_max_tlimit_c=gpu_max_tlimit,
        fan_percent=number(source, "nvmlDeviceGetFanSpeed", bdf, high=1000),
    )


def _celsius(source: Source, function: str, bdf: str, *args: int) -> int | Missing:
    """Degrees or a difference of degrees; a negative one that was read as unsigned is out of range."""
    return number(source, function, bdf, *args, low=-273, high=1000)
