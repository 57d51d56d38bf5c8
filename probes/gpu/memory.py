"""A GPU's memory: size, use, ECC mode and spare rows."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuMemory, RowHistogram
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.quantities import facts_of, nested, plain


def probe(source: Source) -> tuple[GpuMemory, ...] | Missing:
    """``nvmlDeviceGetMemoryInfo``, ``GetEccMode`` and ``GetRowRemapperHistogram`` of every GPU."""
    return per_gpu(source, _memory)


def _memory(source: Source, bdf: str) -> GpuMemory:
    facts = facts_of(source, "memory", bdf)
    return GpuMemory(bdf=bdf, row_histogram=RowHistogram(**nested(facts, "row_histogram")), **plain(facts))
