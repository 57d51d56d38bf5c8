"""Fused multiply-adds on all multiprocessors: their rate, and the load of other steps."""

from __future__ import annotations

import ctypes

from dgxcheck.cuda.device import CudaGpu
from dgxcheck.cuda.figures import Fact, figure
from dgxcheck.cuda.timing import Clock, Flow

THREADS, BLOCKS_PER_SM = 256, 8
FLOP_PER_ITERATION = 256
"""Of one thread: 8 accumulators, 16 fused multiply-adds on each."""
LAUNCH_S, SAMPLES = 0.02, 5
_FIRST = 64


def fma(gpu: CudaGpu, clock: Clock) -> Fact:
    """TFLOP/s in single precision."""
    flow, flop = work(gpu, clock)
    samples = [flop / clock.seconds([flow], 1)[0] / 1e12 for _ in range(SAMPLES)]
    return figure(samples, "TFLOP/s", "sm, single precision fused multiply-add")


def work(gpu: CudaGpu, clock: Clock) -> tuple[Flow, float]:
    """Launches of about ``LAUNCH_S`` each, and the floating-point operations of one."""
    blocks = BLOCKS_PER_SM * gpu.sms
    out, stream = gpu.memory(4 * THREADS * blocks), gpu.stream()

    def launches(iterations: int) -> Flow:
        args = (ctypes.c_uint64(out), ctypes.c_uint32(iterations))
        return Flow(gpu, 0, lambda on: gpu.launch("dgx_fma", on, blocks, THREADS, *args), stream)

    taken = clock.seconds([launches(_FIRST)], 1)[0]
    iterations = max(1, min(1 << 20, int(_FIRST * LAUNCH_S / max(taken, 1e-6))))
    return launches(iterations), float(FLOP_PER_ITERATION) * iterations * THREADS * blocks
