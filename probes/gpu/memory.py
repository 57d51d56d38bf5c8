"""A GPU's memory: size, use, ECC mode and spare rows."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuMemory, RowHistogram
from dgxcheck.facts.missing import Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import each
from probes.gpu.values import is_on, members, outputs


def probe(source: Source) -> tuple[GpuMemory, ...] | Missing:
    """``nvmlDeviceGetMemoryInfo``, ``GetEccMode`` and ``GetRowRemapperHistogram`` of every GPU."""
    return each(source, _memory)


def _memory(source: Source, bdf: str) -> GpuMemory:
    total, reserved, free, used = members(
        source, "nvmlDeviceGetMemoryInfo", bdf, names=("total", "reserved", "free", "used")
    )
    current, pending = outputs(source, "nvmlDeviceGetEccMode", bdf, count=2)
    ecc_mode = question("nvmlDeviceGetEccMode", bdf)
    return GpuMemory(
        bdf=bdf,
        total=total,
        reserved=reserved,
        free=free,
        used=used,
        ecc=is_on(current, ecc_mode),
        ecc_pending=is_on(pending, ecc_mode),
        row_histogram=_histogram(source, bdf),
    )


def _histogram(source: Source, bdf: str) -> RowHistogram:
    most, high, partial, low, none = members(
        source, "nvmlDeviceGetRowRemapperHistogram", bdf, names=("max", "high", "partial", "low", "none")
    )
    return RowHistogram(max=most, high=high, partial=partial, low=low, none=none)
