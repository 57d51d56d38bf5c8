"""PCIe link and clocks of a GPU under load, as idle GPUs drop to generation 1 and low clocks."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Any

from dgxcheck.cuda import compute
from dgxcheck.cuda.device import MIB, CudaGpu
from dgxcheck.cuda.driver import NOT_READY
from dgxcheck.cuda.figures import Fact, single
from dgxcheck.cuda.timing import Clock
from dgxcheck.facts.typical import median

NvmlReader = Callable[[str], "dict[str, Any]"]
"""NVML's answers of this moment for a bus id: ``link_gen``, ``link_width``, ``sm_clock``, .."""
SECONDS, BEFORE_LOOKING_S = 0.5, 0.01
COPIED = 64 * MIB
COPIES, MOST_COPIES, LAUNCHES = 16, 512, 4
"""Queued before each look, beside ``LAUNCHES``: twice as many where they were through before it, as on faster links."""


def under_load(gpu: CudaGpu, clock: Clock, step: Mapping[str, Any], look: NvmlReader) -> Fact:
    """NVML sampled while copies from the host and multiply-adds run.

    The link is the best of the samples, as it takes a moment to train up; the throttle reasons are combined.
    """
    seconds = step.get("seconds", SECONDS)
    host, target = gpu.host(COPIED), gpu.memory(COPIED)
    stream = gpu.stream()
    load = compute.Load(gpu, clock).flow if gpu.has_kernel() else None
    samples: list[dict[str, Any]] = []
    late_samples: list[dict[str, Any]] = []
    copies, until = COPIES, time.monotonic() + seconds
    while not late_samples or time.monotonic() < until:
        for _ in range(copies):
            gpu.call("cuMemcpyHtoDAsync_v2", target, host.address, COPIED, stream)
        if load is not None:
            for _ in range(LAUNCHES):
                load.enqueue(load.stream)
        time.sleep(BEFORE_LOOKING_S)
        sample = look(step["gpus"][0])
        gpu.use()
        at_work = gpu.driver.status("cuStreamQuery", stream) == NOT_READY
        (samples if at_work else late_samples).append(sample)
        copies = copies if at_work else min(2 * copies, MOST_COPIES)
        gpu.wait(stream)
        if load is not None:
            gpu.wait(load.stream)
        if at_work and time.monotonic() >= until:
            break
    used = samples or late_samples
    figures = {name: _of([each[name] for each in used if each[name] is not None], name) for name in used[0]}
    what = "copies from the host and multiply-adds" if load is not None else "copies from the host"
    number = f"{len(used)} sample{'' if len(used) == 1 else 's'}"
    return single(None, "", f"NVML, {number} {'during' if samples else 'just after'} {what}", **figures)


def _of(values: list[Any], name: str) -> Any:
    """One value from several samples; None without any."""
    if not values:
        return None
    if name == "reasons":
        return reduce(or_, values)
    return max(values) if name.startswith("link_") else median(values)
