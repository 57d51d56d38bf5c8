"""A GPU's PCI link and BAR1 as NVML tells them."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuPcie
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.quantities import facts_of


def probe(source: Source) -> tuple[GpuPcie, ...] | Missing:
    """``nvmlDeviceGetCurrPcieLink...``, ``GetMaxPcieLink...`` and ``GetBAR1MemoryInfo`` of every GPU."""
    return per_gpu(source, _pcie)


def _pcie(source: Source, bdf: str) -> GpuPcie:
    return GpuPcie(bdf=bdf, **facts_of(source, "pcie", bdf))
