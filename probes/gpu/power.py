"""A GPU's power draw and limits."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuPower
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.gpu.listing import each
from probes.gpu.values import number, outputs


def probe(source: Source) -> tuple[GpuPower, ...] | Missing:
    """``nvmlDeviceGetPowerUsage`` and the power limits of every GPU."""
    return each(source, _power)


def _power(source: Source, bdf: str) -> GpuPower:
    lowest, highest = outputs(source, "nvmlDeviceGetPowerManagementLimitConstraints", bdf, count=2)
    return GpuPower(
        bdf=bdf,
        usage_mw=number(source, "nvmlDeviceGetPowerUsage", bdf),
        enforced_limit_mw=number(source, "nvmlDeviceGetEnforcedPowerLimit", bdf),
        limit_mw=number(source, "nvmlDeviceGetPowerManagementLimit", bdf),
        default_limit_mw=number(source, "nvmlDeviceGetPowerManagementDefaultLimit", bdf),
        min_limit_mw=lowest,
        max_limit_mw=highest,
    )
