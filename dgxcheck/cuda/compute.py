"""Multiply-adds on all multiprocessors: their rate, whether all work out the same, and the load of other steps."""

from __future__ import annotations

import ctypes
from collections import Counter

from dgxcheck.cuda.device import CudaGpu
from dgxcheck.cuda.figures import Fact, figure
from dgxcheck.cuda.timing import Clock, Flow

THREADS, BLOCKS_PER_SM = 256, 8
FMA, MMA = "dgx_fma", "dgx_mma"
FLOP_PER_ITERATION = {FMA: 256, MMA: 4096}
"""Of one thread: 8 sums with 16 fused multiply-adds on each; a 32nd of 32 products of 16 x 8 x 16 matrices."""
LAUNCH_S, SAMPLES = 0.02, 5
_FIRST = 64


class Load:
    """Launches of a kernel, of about ``LAUNCH_S`` each, in which every block works out the same."""

    def __init__(self, gpu: CudaGpu, clock: Clock, kernel: str = FMA) -> None:
        self._gpu, self._kernel = gpu, kernel
        self._blocks = BLOCKS_PER_SM * gpu.sms
        self._bytes = 4 * THREADS * self._blocks
        self._out, self._stream, self._host = gpu.memory(self._bytes), gpu.stream(), gpu.host(self._bytes)
        taken = clock.seconds([self._launches(_FIRST)], 1)[0]
        iterations = max(1, min(1 << 20, int(_FIRST * LAUNCH_S / max(taken, 1e-6))))
        self.flow = self._launches(iterations)
        self.flop = float(FLOP_PER_ITERATION[kernel]) * iterations * THREADS * self._blocks
        """Floating-point operations of one launch."""

    def differing(self) -> tuple[int, int]:
        """Wrong words of the last launch, and bytes checked: words of a block that differ from those of most blocks.

        A multiprocessor that works out something else than the others is broken, though no counter says so
        (https://arxiv.org/abs/2102.11245: silent data corruption).
        """
        self._gpu.call("cuMemcpyDtoHAsync_v2", self._host.address, self._out, self._bytes, self._stream)
        self._gpu.wait(self._stream)
        whole, each = ctypes.string_at(self._host.address, self._bytes), 4 * THREADS
        by_block = Counter(whole[at : at + each] for at in range(0, self._bytes, each))
        usual = memoryview(by_block.most_common(1)[0][0]).cast("I")
        wrong = 0
        for block, times in by_block.items():
            words = memoryview(block).cast("I")
            wrong += times * sum(words[at] != usual[at] for at in range(THREADS)) if words != usual else 0
        return wrong, self._bytes

    def _launches(self, iterations: int) -> Flow:
        args = (ctypes.c_uint64(self._out), ctypes.c_uint32(iterations))
        return Flow(
            self._gpu, 0, lambda on: self._gpu.launch(self._kernel, on, self._blocks, THREADS, *args), self._stream
        )


def fma(gpu: CudaGpu, clock: Clock) -> Fact:
    """TFLOP/s in single precision."""
    load = Load(gpu, clock)
    samples = [load.flop / clock.seconds([load.flow], 1)[0] / 1e12 for _ in range(SAMPLES)]
    wrong, checked = load.differing()
    return figure(samples, "TFLOP/s", "sm, single precision fused multiply-add", wrong=wrong, checked=checked)


def heaviest(gpu: CudaGpu, clock: Clock) -> Load:
    """The load with the highest power: on an H200 fused multiply-adds draw 373 W, tensor cores its limit of 700 W."""
    return Load(gpu, clock, MMA if gpu.has_kernel(MMA) else FMA)
