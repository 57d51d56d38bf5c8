"""What NVML calls the nearest common ancestor of every two GPUs."""

from __future__ import annotations

from itertools import combinations

from dgxcheck.facts.missing import Missing, question
from dgxcheck.facts.nvlink import GpuPair
from dgxcheck.source.protocol import Source
from probes.gpu.listing import present
from probes.gpu.values import garbled, number

LEVELS = (0, 10, 20, 30, 40, 50)
"""``nvmlGpuTopologyLevel_t``."""


def probe(source: Source) -> tuple[GpuPair, ...] | Missing:
    """``nvmlDeviceGetTopologyCommonAncestor`` of every unordered pair, in NVML's order."""
    gpus = present(source)
    if isinstance(gpus, Missing):
        return gpus
    return tuple(GpuPair(a=a, b=b, common_ancestor=_ancestor(source, f"{a} {b}")) for a, b in combinations(gpus, 2))


def _ancestor(source: Source, pair: str) -> int | Missing:
    level = number(source, "nvmlDeviceGetTopologyCommonAncestor", pair)
    if isinstance(level, Missing) or level in LEVELS:
        return level
    return garbled(question("nvmlDeviceGetTopologyCommonAncestor", pair), level)
