"""What NVML says of pairs of GPUs: their common ancestor, and peer access."""

from __future__ import annotations

from itertools import combinations, permutations

from dgxcheck.facts.missing import Missing, question
from dgxcheck.facts.nvlink import CAPABILITIES, STATUSES, GpuPair, P2pStatus
from dgxcheck.source.protocol import Source
from probes.gpu.answers import garbled, number, present

LEVELS = (0, 10, 20, 30, 40, 50)
"""``nvmlGpuTopologyLevel_t``."""


def gpu_pairs(source: Source) -> tuple[GpuPair, ...] | Missing:
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


def p2p(source: Source) -> tuple[P2pStatus, ...] | Missing:
    """``nvmlDeviceGetP2PStatus`` of every ordered pair and capability."""
    gpus = present(source)
    if isinstance(gpus, Missing):
        return gpus
    return tuple(_pair(source, a, b) for a, b in permutations(gpus, 2))


def _pair(source: Source, a: str, b: str) -> P2pStatus:
    read, write, nvlink, atomics, prop = (_status(source, f"{a} {b}", index) for index in range(len(CAPABILITIES)))
    return P2pStatus(a=a, b=b, read=read, write=write, nvlink=nvlink, atomics=atomics, prop=prop)


def _status(source: Source, pair: str, capability: int) -> str | Missing:
    status = number(source, "nvmlDeviceGetP2PStatus", pair, capability, high=len(STATUSES) - 1)
    return status if isinstance(status, Missing) else STATUSES[status]
