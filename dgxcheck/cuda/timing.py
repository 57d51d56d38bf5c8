"""How long work on GPUs takes, by the GPUs' own clocks: between events, behind a kernel that waits for the host.

All is queued before any of it starts, so the interpreter's speed is no part of the figure: a kernel spins until the
host sets a word, the warm-up runs behind it, then the events with the work between them. nvbandwidth does so too.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence

from dgxcheck.cuda.device import CudaGpu
from dgxcheck.cuda.driver import NOT_READY

WARM_UPS = 2
"""Puts one piece of work on the flow's stream."""


class Flow:
    """Work of one kind on a stream of one GPU."""

    def __init__(
        self, gpu: CudaGpu, bytes_each: int, enqueue: Callable[[int], None], stream: int = 0, times: int = 1
    ) -> None:
        """``enqueue(stream)`` queues one piece, which is worth ``bytes_each``; ``times`` as many of a companion."""
        self.gpu = gpu
        self.bytes_each = bytes_each
        self.stream = stream or gpu.stream()
        self.begin, self.end, self.held, self.start = (gpu.event() for _ in range(4))
        self.enqueue = enqueue
        self.times = times


class Clock:
    """Times flows. ``between_s``: sleep after each call that queues work, for tests that this changes no result."""

    def __init__(self, between_s: float = 0.0) -> None:
        self._between_s = between_s

    def seconds(self, flows: Sequence[Flow], repeats: int) -> list[float]:
        """Seconds that each flow took for so many repeats of its work.

        All start together, at the release of the first one's kernel. Where that kernel gave up before all was queued,
        as it does when a driver takes no more work (cuda-samples warns of it), less is queued.
        """
        first, stream = flows[0].gpu, flows[0].stream
        flag = self._hold(flows[0])
        for flow in flows:
            self._queue(flow, WARM_UPS)
        first.call("cuEventRecord", flows[0].start, stream)
        for flow in flows:
            if flow is not flows[0]:
                flow.gpu.call("cuStreamWaitEvent", flow.stream, flows[0].start, 0)
            flow.gpu.call("cuEventRecord", flow.begin, flow.stream)
            self._queue(flow, repeats * flow.times)
            flow.gpu.call("cuEventRecord", flow.end, flow.stream)
        first.use()
        in_time = flag is None or first.driver.status("cuEventQuery", flows[0].held) == NOT_READY
        if flag is not None:
            flag[0] = 1
        for flow in flows:
            flow.gpu.wait(flow.stream)
        if not in_time and repeats > 1:
            return [2 * seconds for seconds in self.seconds(flows, repeats // 2)]
        return [self._between(flow.gpu, flow.begin, flow.end) for flow in flows]

    def rates(self, flows: Sequence[Flow], repeats: int) -> list[float]:
        """GB/s of each flow, while all run."""
        seconds = self.seconds(flows, repeats)
        return [flow.bytes_each * repeats * flow.times / s / 1e9 for flow, s in zip(flows, seconds, strict=True)]

    def _queue(self, flow: Flow, pieces: int) -> None:
        for _ in range(pieces):
            flow.enqueue(flow.stream)
            if self._between_s:
                time.sleep(self._between_s)

    def _hold(self, flow: Flow) -> ctypes.Array[ctypes.c_uint32] | None:
        """A kernel at the head of the stream that waits for the word given back; None where no kernel can run."""
        gpu = flow.gpu
        if not gpu.has_kernel():
            return None
        host = gpu.flag()
        words = host.words()
        words[0] = 0
        gpu.launch("dgx_spin", flow.stream, 1, 1, ctypes.c_uint64(host.on_device), ctypes.c_uint64(gpu.spin_clocks))
        gpu.call("cuEventRecord", flow.held, flow.stream)
        return words

    def _between(self, gpu: CudaGpu, begin: int, end: int) -> float:
        """Seconds between two events of one GPU."""
        out = ctypes.c_float()
        gpu.call("cuEventElapsedTime", ctypes.byref(out), begin, end)
        return out.value / 1e3
