"""Which function measures a step of a plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any

from dgxcheck.cuda import compute, copies, integrity, latency
from dgxcheck.cuda.copies import LONG, QUICK, SECOND, Size
from dgxcheck.cuda.device import MIB, CudaGpu
from dgxcheck.cuda.figures import Fact, single, skipped
from dgxcheck.cuda.timing import Clock, Flow

MeasureStep = Mapping[str, Any]
"""``key`` and ``gpus`` (bus ids); ``bytes``, ``repeats`` and ``samples`` or ``long`` in place of the usual size;
``with`` (lists of bus ids that are busy meanwhile)."""
Gpus = Mapping[str, CudaGpu]


def measure(step: MeasureStep, gpus: Gpus, clock: Clock) -> Fact:
    """The fact that a step asks for; CudaError and Full as they come."""
    kind = step["key"].split(" ")[1]
    selected = [gpus[bdf] for bdf in step["gpus"]]
    pairs = [selected[:2], *([gpus[a], gpus[b]] for a, b in step["with"])] if kind == "p2p-shared" else [selected[:2]]
    if kind in _OF_PAIRS and not all(a.can_access(b) and b.can_access(a) for a, b in pairs):
        return skipped("not-supported", "CUDA reports no peer access for this pair")
    return _HOW[kind](step, selected, gpus, clock)


def size_of(step: MeasureStep, usual: Size = QUICK) -> Size:
    """How much is copied: what the step says, nvbandwidth's sizes where it is long, the usual else."""
    chosen = LONG if step.get("long") else usual
    return Size(bytes=step.get("bytes", chosen.bytes), repeats=step.get("repeats", chosen.repeats),
                samples=step.get("samples", chosen.samples))  # fmt: skip


def _host(*ways: Callable[[CudaGpu, Size], Flow]) -> Callable[..., Fact]:
    return lambda step, selected, gpus, clock: copies.host(selected[0], clock, size_of(step), *ways)


def _device(by_kernel: bool) -> Callable[..., Fact]:
    return lambda step, selected, gpus, clock: copies.device_copy(selected[0], clock, size_of(step), by_kernel)


def _pair(enabled: bool, both: bool) -> Callable[..., Fact]:
    def measured(step: MeasureStep, selected: list[CudaGpu], gpus: Gpus, clock: Clock) -> Fact:
        size = size_of(step) if enabled else size_of({**step, "long": False}, SECOND)
        return copies.p2p(selected[0], selected[1], clock, size, enabled, both)

    return measured


def _latency(enabled: bool) -> Callable[..., Fact]:
    return lambda step, selected, gpus, clock: latency.small_copy(selected[0], selected[1], clock, enabled)


def _shared(step: MeasureStep, selected: list[CudaGpu], gpus: Gpus, clock: Clock) -> Fact:
    pairs = [(selected[0], selected[1]), *((gpus[a], gpus[b]) for a, b in step["with"])]
    return copies.shared(pairs, clock, size_of(step, SECOND)) | {"with": step["with"], "hop": step["hop"]}


def _ring(step: MeasureStep, selected: list[CudaGpu], gpus: Gpus, clock: Clock) -> Fact:
    order = [*selected, selected[0]]
    if not all(a.can_access(b) and b.can_access(a) for a, b in pairwise(order)):
        return skipped("not-supported", "CUDA reports no peer access between two GPUs that are joined in the ring")
    others = [[gpus[bdf] for bdf in bdfs] for bdfs in step["with"]]
    fact = copies.ring(selected, others, clock, size_of(step, SECOND))
    return fact | {"order": step["gpus"], "directions": 2}


def _memory(step: MeasureStep, selected: list[CudaGpu], gpus: Gpus, clock: Clock) -> Fact:
    whole = selected[0].free() if step.get("long") else integrity.MEMORY_BYTES
    return integrity.memory(selected[0], step.get("memory_mib", whole // MIB) * MIB)


_HOW: Mapping[str, Callable[..., Fact]] = {
    "host-to-device": _host(copies.down),
    "device-to-host": _host(copies.up),
    "host-both": _host(copies.down, copies.up),
    "device-copy": _device(by_kernel=False),
    "device-copy-sm": _device(by_kernel=True),
    "memory-integrity": _memory,
    "compute": lambda step, selected, gpus, clock: compute.fma(selected[0], clock),
    "access": lambda step, selected, gpus, clock: single(
        selected[0].can_access(selected[1]), "", "cuDeviceCanAccessPeer"
    ),
    "p2p-integrity": lambda step, selected, gpus, clock: integrity.between(selected[0], selected[1]),
    "p2p": _pair(enabled=True, both=False),
    "p2p-both": _pair(enabled=True, both=True),
    "p2p-off": _pair(enabled=False, both=False),
    "p2p-off-both": _pair(enabled=False, both=True),
    "latency": _latency(enabled=True),
    "latency-off": _latency(enabled=False),
    "latency-sm": lambda step, selected, gpus, clock: latency.chase(selected[0], selected[1], clock),
    "p2p-shared": _shared,
    "ring": _ring,
}
_OF_PAIRS = ("p2p-integrity", "p2p", "p2p-both", "latency", "latency-sm", "p2p-shared")
"""Kinds that need peer access in both directions."""
