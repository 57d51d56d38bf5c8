"""How long work on GPUs takes, by the GPUs' own clocks: between events, behind a kernel that waits for the host.

All is queued before any of it starts, so the interpreter's speed is no part of the figure: a kernel spins until the
host sets a word, the warm-up runs behind it, then the events with the work between them. nvbandwidth does so too.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence

from dgxcheck.cuda.device import Gpu

WARM_UPS = 2
Enqueue = Callable[[], None]
"""Puts one piece of work on the flow's stream."""


class Flow:
    """Work of one kind on a stream of one GPU."""

    def __init__(self, gpu: Gpu, bytes_each: int, enqueue: Callable[[int], None], stream: int = 0) -> None:
        """``enqueue(stream)`` queues one piece, which is worth ``bytes_each``."""
        self.gpu = gpu
        self.bytes_each = bytes_each
        self.stream = stream or gpu.stream()
        self.begin, self.end = gpu.event(), gpu.event()
        self.enqueue = enqueue


class Clock:
    """Measures flows. ``between_s`` sleeps after each call that queues work: a proof that it does not matter."""

    def __init__(self, between_s: float = 0.0) -> None:
        self._between_s = between_s

    def seconds(self, flows: Sequence[Flow], repeats: int) -> tuple[float, list[float]]:
        """Seconds from the common start until the last flow is through, and those that each took.

        All flows start together, at the release of the first one's kernel.
        """
        first = flows[0].gpu
        driver = first.driver
        flag = self._hold(first, flows[0].stream)
        start, joined = first.event(), first.event()
        for _ in range(WARM_UPS):
            flows[0].enqueue(flows[0].stream)
            self._pause()
        first.use()
        driver.call("cuEventRecord", start, flows[0].stream)
        for flow in flows:
            flow.gpu.use()
            if flow is not flows[0]:
                driver.call("cuStreamWaitEvent", flow.stream, start, 0)
            driver.call("cuEventRecord", flow.begin, flow.stream)
            for _ in range(repeats):
                flow.enqueue(flow.stream)
                self._pause()
            flow.gpu.use()
            driver.call("cuEventRecord", flow.end, flow.stream)
        first.use()
        for flow in flows[1:]:
            driver.call("cuStreamWaitEvent", flows[0].stream, flow.end, 0)
        driver.call("cuEventRecord", joined, flows[0].stream)
        if flag is not None:
            flag[0] = 1
        for flow in flows:
            flow.gpu.wait(flow.stream)
        each = [self._between(flow.gpu, flow.begin, flow.end) for flow in flows]
        return self._between(first, start, joined), each

    def rates(self, flows: Sequence[Flow], repeats: int, samples: int) -> list[float]:
        """GB/s of all flows together, sample by sample."""
        total = sum(flow.bytes_each for flow in flows) * repeats
        return [total / self.seconds(flows, repeats)[0] / 1e9 for _ in range(samples)]

    def _hold(self, gpu: Gpu, stream: int) -> ctypes.Array[ctypes.c_uint32] | None:
        """A kernel at the head of the stream that waits for the word given back; None where no kernel can run."""
        if not gpu.has_kernels:
            return None
        host = gpu.host(4)
        words = host.words()
        words[0] = 0
        gpu.launch("dgx_spin", stream, 1, 1, ctypes.c_uint64(host.on_device), ctypes.c_uint64(gpu.spin_clocks))
        return words

    def _pause(self) -> None:
        if self._between_s:
            time.sleep(self._between_s)

    def _between(self, gpu: Gpu, begin: int, end: int) -> float:
        """Seconds between two events of one GPU."""
        gpu.use()
        out = ctypes.c_float()
        gpu.driver.call("cuEventElapsedTime", ctypes.byref(out), begin, end)
        return out.value / 1e3
