"""Copy bandwidth by copy engine and by kernel, in GB/s (1e9 bytes): alone, of pairs that share a link, of rings."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

from dgxcheck.cuda.device import MIB, CudaGpu
from dgxcheck.cuda.figures import Fact, figure
from dgxcheck.cuda.timing import Clock, Flow
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import median

THREADS, BLOCKS_PER_SM = 256, 8


class Size(Record):
    """How much is copied: bytes of one copy, copies in a sample, samples."""

    bytes: int
    repeats: int
    samples: int


QUICK = Size(bytes=64 * MIB, repeats=8, samples=5)
LONG = Size(bytes=512 * MIB, repeats=16, samples=3)
"""nvbandwidth's"""
SECOND = Size(bytes=64 * MIB, repeats=4, samples=3)
"""For slow paths through the host."""


def host(gpu: CudaGpu, clock: Clock, size: Size, *ways: Callable[[CudaGpu, Size], Flow]) -> Fact:
    """Between the GPU and pinned memory of its own NUMA node, ``down``, ``up``, or the sum of both at once."""
    return _figure(clock, [way(gpu, size) for way in ways], size)


def device_copy(gpu: CudaGpu, clock: Clock, size: Size, by_kernel: bool = False) -> Fact:
    """Within the GPU's memory, by copy engine or by a kernel on all multiprocessors; each byte is read and written, so
    it counts twice."""
    copied = _beyond_cache(gpu, size)
    target, origin = gpu.memory(copied.bytes), gpu.memory(copied.bytes)
    if by_kernel:
        flow = Flow(gpu, 2 * copied.bytes, lambda stream: sm_copy(gpu, stream, target, origin, copied.bytes))
    else:
        flow = _flow(gpu, "cuMemcpyDtoDAsync_v2", target, origin, copied.bytes, times=2)
    return _figure(clock, [flow], copied, "read and written", engine="sm" if by_kernel else "ce")


def p2p(a: CudaGpu, b: CudaGpu, clock: Clock, size: Size, enabled: bool, both: bool) -> Fact:
    """From ``a``'s memory to ``b``'s, or ``both`` directions at once, their sum; with peer access, or without, where
    the driver goes through the host."""
    ways = ((a, b), (b, a)) if both else ((a, b),)
    return _figure(clock, [peer_flow(*ends, size, enabled) for ends in ways], size, access_words(enabled))


def peer_flow(a: CudaGpu, b: CudaGpu, size: Size, enabled: bool = True) -> Flow:
    """Copies from ``a`` to ``b`` on a stream of ``a``."""
    for gpu, peer in ((a, b), (b, a)):
        gpu.reach(peer, enabled)
    target, origin = b.memory(size.bytes), a.memory(size.bytes)
    return Flow(a, size.bytes, peer_copy(a, b, target, origin, size.bytes, enabled))


def peer_copy(a: CudaGpu, b: CudaGpu, target: int, origin: int, size: int, enabled: bool) -> Callable[[int], None]:
    """Queues one copy. Without peer access ``cuMemcpyPeerAsync`` is staged through the host by the driver."""

    def copy(stream: int) -> None:
        if enabled:
            a.call("cuMemcpyDtoDAsync_v2", target, origin, size, stream)
        else:
            a.call("cuMemcpyPeerAsync", target, b.context, origin, a.context, size, stream)

    return copy


def sm_copy(gpu: CudaGpu, stream: int, target: int, origin: int, size: int) -> None:
    """A kernel of ``gpu`` copies ``size`` bytes, a multiple of 16, between addresses that it can reach."""
    args = (ctypes.c_uint64(target), ctypes.c_uint64(origin), ctypes.c_uint64(size // 16))
    gpu.launch("dgx_copy", stream, BLOCKS_PER_SM * gpu.sms, THREADS, *args)


def down(gpu: CudaGpu, size: Size) -> Flow:
    """Copies from the host."""
    host, target = gpu.host(size.bytes), gpu.memory(size.bytes)
    return _flow(gpu, "cuMemcpyHtoDAsync_v2", target, host.address, size.bytes)


def up(gpu: CudaGpu, size: Size) -> Flow:
    """Copies to the host."""
    return _flow(gpu, "cuMemcpyDtoHAsync_v2", gpu.host(size.bytes).address, gpu.memory(size.bytes), size.bytes)


def _flow(gpu: CudaGpu, function: str, target: int, origin: int, size: int, times: int = 1) -> Flow:
    """Each copy counts ``times``."""
    return Flow(gpu, times * size, lambda stream: gpu.call(function, target, origin, size, stream))


def _beyond_cache(gpu: CudaGpu, size: Size) -> Size:
    """A size far above L2: a DGX-1 P100 copies 4 MiB at 762 GB/s, and large buffers at 522 (Tartan's sweep)."""
    return Size(bytes=max(size.bytes, 256 * MIB, 4 * gpu.l2_bytes // 16 * 16), repeats=size.repeats,
                samples=size.samples)  # fmt: skip


def access_words(enabled: bool) -> str:
    return "peer access on" if enabled else "peer access off"


def _figure(clock: Clock, flows: Sequence[Flow], size: Size, what: str = "", engine: str = "ce") -> Fact:
    held = "behind a spinning kernel" if flows[0].gpu.has_kernel() else "without a kernel to hold them back"
    copied = f"{engine}, {size.bytes // MIB} MiB x {size.repeats} {held}"
    method = f"{copied}, {what}" if what else copied
    return figure([sum(clock.rates(flows, size.repeats)) for _ in range(size.samples)], "GB/s", method)


Peers = tuple[CudaGpu, CudaGpu]


def shared(pairs: Sequence[Peers], clock: Clock, size: Size) -> Fact:
    """GB/s of the first pair's copies while those of the others run too."""
    flows = [peer_flow(a, b, size) for a, b in pairs]
    for other in flows[1:]:
        other.times = 2  # they are still at work when the first is through
    rates = [clock.rates(flows, size.repeats)[0] for _ in range(size.samples)]
    return figure(rates, "GB/s", f"ce, {size.bytes // MIB} MiB x {size.repeats}, {len(pairs)} pairs at once")


def ring(order: Sequence[CudaGpu], others: Sequence[Sequence[CudaGpu]], clock: Clock, size: Size) -> Fact:
    """Bus bandwidth of ring traffic: every GPU sends to those on both sides at once, while other rings run.

    A ring is as fast as its slowest hop, in each of its two directions.
    """
    pairs = [pair for gpus in (order, *others) for way in (gpus, gpus[::-1]) for pair in _round(way)]
    flows = [peer_flow(a, b, size) for a, b in pairs]
    half = len(order)
    samples, hops = [], []
    for _ in range(size.samples):
        rates = clock.rates(flows, size.repeats)[: 2 * half]
        samples.append(min(rates[:half]) + min(rates[half:]))
        hops.append(rates)
    method = f"ce, {size.bytes // MIB} MiB x {size.repeats}, both ways round, {1 + len(others)} rings at once"
    return figure(samples, "GB/s", method, hops=[round(median(rates), 3) for rates in zip(*hops, strict=True)])


def _round(order: Sequence[CudaGpu]) -> list[Peers]:
    return list(zip(order, (*order[1:], order[0]), strict=True))
