"""Whether the driver lets two GPUs reach each other's memory, in either direction."""

from __future__ import annotations

from itertools import permutations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import CAPABILITIES, STATUSES, P2pStatus
from dgxcheck.source.protocol import Source
from probes.gpu.listing import present
from probes.gpu.values import number


def probe(source: Source) -> tuple[P2pStatus, ...] | Missing:
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
