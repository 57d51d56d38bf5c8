"""A GPU's temperatures, their thresholds and its fan."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuThermal
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.quantities import facts_of


def probe(source: Source) -> tuple[GpuThermal, ...] | Missing:
    """``nvmlDeviceGetTemperature``, ``GetTemperatureThreshold``, ``GetFieldValues`` and ``GetFanSpeed``."""
    return per_gpu(source, _thermal)


def _thermal(source: Source, bdf: str) -> GpuThermal:
    return GpuThermal(bdf=bdf, **facts_of(source, "thermal", bdf))
