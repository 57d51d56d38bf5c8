"""A GPU's power draw and limits."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuPower
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.quantities import facts_of


def probe(source: Source) -> tuple[GpuPower, ...] | Missing:
    """``nvmlDeviceGetPowerUsage`` and the power limits of every GPU."""
    return per_gpu(source, _power)


def _power(source: Source, bdf: str) -> GpuPower:
    return GpuPower(bdf=bdf, **facts_of(source, "power", bdf))
