"""Fused multiply-adds on all multiprocessors: their rate, and a load for other steps."""

from __future__ import annotations

import ctypes

from dgxcheck.cuda.device import CudaGpu
from dgxcheck.cuda.figures import Fact, figure
from dgxcheck.cuda.timing import Clock, Flow

THREADS, BLOCKS_PER_SM = 256, 8
FLOP_PER_ITERATION = 256
"""Of one thread: 8 accumulators, 16 fused multiply-adds on each."""
LAUNCH_S, SAMPLES = 0.02, 5
QUEUED = 4
_FIRST = 64


def fma(gpu: CudaGpu, clock: Clock) -> Fact:
    """TFLOP/s in single precision."""
    flow, flop = work(gpu, clock)
    samples = [flop / clock.seconds([flow], 1)[0] / 1e12 for _ in range(SAMPLES)]
    return figure(samples, "TFLOP/s", "sm, single precision fused multiply-add")


def work(gpu: CudaGpu, clock: Clock) -> tuple[Flow, float]:
    """Launches of about ``LAUNCH_S`` each, and the floating-point operations of one."""
    out, stream = _result(gpu), gpu.stream()
    iterations = _iterations(gpu, clock, out, stream)
    flop = float(FLOP_PER_ITERATION) * iterations * THREADS * BLOCKS_PER_SM * gpu.sms
    return _flow(gpu, out, stream, iterations), flop


class ComputeLoad:
    """Keeps a GPU at full power: launches of ``LAUNCH_S`` each, a few of them queued."""

    def __init__(self, gpu: CudaGpu, clock: Clock) -> None:
        self.gpu = gpu
        self._stream = gpu.stream()
        self._out = _result(gpu)
        self._iterations = _iterations(gpu, clock, self._out, self._stream)

    def queue(self) -> None:
        """Some launches more."""
        for _ in range(QUEUED):
            _launch(self.gpu, self._out, self._stream, self._iterations)

    def wait(self) -> None:
        """Until all of them are through."""
        self.gpu.wait(self._stream)


def _result(gpu: CudaGpu) -> int:
    return gpu.memory(4 * THREADS * BLOCKS_PER_SM * gpu.sms)


def _iterations(gpu: CudaGpu, clock: Clock, out: int, stream: int) -> int:
    """So many that one launch takes about ``LAUNCH_S``."""
    taken = clock.seconds([_flow(gpu, out, stream, _FIRST)], 1)[0]
    return max(1, min(1 << 20, int(_FIRST * LAUNCH_S / max(taken, 1e-6))))


def _flow(gpu: CudaGpu, out: int, stream: int, iterations: int) -> Flow:
    return Flow(gpu, 0, lambda on: _launch(gpu, out, on, iterations), stream)


def _launch(gpu: CudaGpu, out: int, stream: int, iterations: int) -> None:
    args = (ctypes.c_uint64(out), ctypes.c_uint32(iterations))
    gpu.launch("dgx_fma", stream, BLOCKS_PER_SM * gpu.sms, THREADS, *args)
