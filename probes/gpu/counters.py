"""Counters of a GPU that only growth gives a meaning: PCI replays and time lost to limits."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuCounters
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.quantities import facts_of


def probe(source: Source) -> tuple[GpuCounters, ...] | Missing:
    """``nvmlDeviceGetPcieReplayCounter`` and ``nvmlDeviceGetViolationStatus`` of every GPU."""
    return per_gpu(source, _counters)


def _counters(source: Source, bdf: str) -> GpuCounters:
    return GpuCounters(bdf=bdf, **facts_of(source, "counters", bdf))
