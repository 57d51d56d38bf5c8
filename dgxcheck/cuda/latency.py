"""Latency of two kinds: a small copy in us, and a single load by a kernel in ns."""

from __future__ import annotations

import ctypes
import random

from dgxcheck.cuda.copies import Size, access_words, peer_flow
from dgxcheck.cuda.device import MIB, CudaGpu
from dgxcheck.cuda.figures import Fact, figure
from dgxcheck.cuda.timing import Clock, Flow

SMALL = Size(bytes=16, repeats=100, samples=5)
"""As p2pBandwidthLatencyTest has it."""
CHASED_BYTES, STRIDE, LOADS, SAMPLES = 2 * MIB, 256, 20_000, 3


def small_copy(a: CudaGpu, b: CudaGpu, clock: Clock, enabled: bool = True) -> Fact:
    """us for a copy of 16 bytes from ``a`` to ``b``, in a queue of them."""
    flow = peer_flow(a, b, SMALL, enabled)
    samples = [1e6 * clock.seconds([flow], SMALL.repeats)[0] / SMALL.repeats for _ in range(SMALL.samples)]
    return figure(samples, "us", f"ce, {SMALL.bytes} bytes x {SMALL.repeats}, {access_words(enabled)}")


def chase(a: CudaGpu, b: CudaGpu, clock: Clock) -> Fact:
    """ns for a load of one thread of ``a`` from ``b``'s memory, each at the address that the one before has read."""
    if a is not b:
        a.reach(b, wanted=True)
    stream = a.stream()
    chain = _chain(b)
    out = a.memory(16)

    def load(_: int) -> None:
        args = (ctypes.c_uint64(chain), ctypes.c_uint32(LOADS), ctypes.c_uint64(out))
        a.launch("dgx_chase", stream, 1, 1, *args)

    flow = Flow(a, 0, load, stream)
    samples = [1e9 * clock.seconds([flow], 1)[0] / LOADS for _ in range(SAMPLES)]
    return figure(samples, "ns", f"sm, {LOADS} dependent loads from {CHASED_BYTES // MIB} MiB")


def _chain(gpu: CudaGpu) -> int:
    """A closed chain of pointers in the GPU's memory, in an order that no prefetching guesses; where it begins."""
    base = gpu.memory(CHASED_BYTES)
    host = gpu.host(CHASED_BYTES)
    nodes = list(range(1, CHASED_BYTES // STRIDE))
    random.Random(0).shuffle(nodes)
    words = (ctypes.c_uint64 * (CHASED_BYTES // 8)).from_address(host.address)
    node = 0
    for following in (*nodes, 0):
        words[node * STRIDE // 8] = base + following * STRIDE
        node = following
    stream = gpu.stream()
    gpu.call("cuMemcpyHtoDAsync_v2", base, host.address, CHASED_BYTES, stream)
    gpu.wait(stream)
    return base
