"""A GPU's PCI link and BAR1 as NVML tells them."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuPcie
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.gpu.listing import each
from probes.gpu.values import members, number


def probe(source: Source) -> tuple[GpuPcie, ...] | Missing:
    """``nvmlDeviceGetCurrPcieLink...``, ``GetMaxPcieLink...`` and ``GetBAR1MemoryInfo`` of every GPU."""
    return each(source, _pcie)


def _pcie(source: Source, bdf: str) -> GpuPcie:
    total, free, used = members(source, "nvmlDeviceGetBAR1MemoryInfo", bdf, names=("bar1Total", "bar1Free", "bar1Used"))
    return GpuPcie(
        bdf=bdf,
        link_gen=number(source, "nvmlDeviceGetCurrPcieLinkGeneration", bdf),
        link_width=number(source, "nvmlDeviceGetCurrPcieLinkWidth", bdf),
        max_link_gen=number(source, "nvmlDeviceGetMaxPcieLinkGeneration", bdf),
        max_link_width=number(source, "nvmlDeviceGetMaxPcieLinkWidth", bdf),
        gpu_max_link_gen=number(source, "nvmlDeviceGetGpuMaxPcieLinkGeneration", bdf),
        bar1_total=total,
        bar1_free=free,
        bar1_used=used,
    )
