"""One child's measurements: the driver opened once, then step by step, each with what went wrong as its answer."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from dgxcheck.cuda.device import CudaGpu, Full
from dgxcheck.cuda.driver import OUT_OF_MEMORY, STICKY, TAKEN, UNAVAILABLE, UNLOADABLE, CudaError, Driver
from dgxcheck.cuda.figures import TOOL, Fact, failed, single, skipped
from dgxcheck.cuda.steps import MeasureStep, measure
from dgxcheck.cuda.timing import Clock
from dgxcheck.cuda.under_load import NvmlReader, under_load

START = "measure cuda all"
"""Whether there is a CUDA driver that can be used: its version, as ``cuDriverGetVersion`` has it."""
Busy = Callable[[str], "str | None"]
"""Why the GPU of this bus id cannot be measured now; None where it can."""


class Session:
    """The driver and its GPUs, in one process."""

    def __init__(self, plan: dict[str, Any], busy: Busy, look: NvmlReader) -> None:
        """``busy`` and ``look`` ask NVML."""
        self._plan = plan
        self._busy = busy
        self._look = look
        self._clock = Clock(plan.get("between_ms", 0) / 1e3)
        self._gpus: dict[str, CudaGpu] = {}
        self._how = "measured"
        self._clocks: dict[str, float | None] = {}
        self._all_cpus = os.sched_getaffinity(0)

    def start(self) -> Fact:
        """Open the driver; a fact that is not ``value`` means that nothing can be measured."""
        try:
            driver = Driver(self._plan["library"])
        except OSError as error:
            return skipped("not-supported", f"no CUDA driver: {error}")
        self._how = "simulated" if driver.simulated else "measured"
        try:
            driver.call("cuInit", 0)
            version = driver.number("cuDriverGetVersion")
            for ordinal in range(driver.number("cuDeviceGetCount")):
                gpu = CudaGpu(driver, ordinal)
                self._gpus[_bdf(driver, gpu.device)] = gpu
        except CudaError as error:
            return skipped("not-visible", str(error)) if error.code in UNAVAILABLE else failed(error)
        return self._signed(single(version, "", "cuDriverGetVersion"))

    def gpu(self, bdf: str) -> CudaGpu | None:
        """The GPU of a bus id; None where CUDA does not list it."""
        return self._gpus.get(bdf)

    def answer(self, step: MeasureStep) -> Fact:
        """The fact of a step; with ``sticky`` the context is broken, and this process cannot measure any more."""
        return self._signed(self._answer(step))

    def close(self) -> None:
        """Release everything; errors of the driver are ignored."""
        for end in (CudaGpu.part, CudaGpu.release):
            for gpu in self._gpus.values():
                with suppress(CudaError):
                    end(gpu)

    def _answer(self, step: MeasureStep) -> Fact:
        bdfs = dict.fromkeys((*step["gpus"], *_among(step))).keys()
        for bdf in bdfs:
            if bdf not in self._gpus:
                return skipped("not-visible", f"CUDA does not list {bdf}")
            if why := self._busy(bdf):
                return skipped("busy", f"{bdf}: {why}")
        self.bind(step)
        try:
            return self._measured(step)
        except Full as full:
            return skipped("busy", str(full)) | {"code": OUT_OF_MEMORY}
        except CudaError as error:
            return self.refused(error)
        finally:
            for bdf in bdfs & self._gpus.keys():
                with suppress(CudaError):
                    self._gpus[bdf].give_back()

    def refused(self, error: CudaError) -> Fact:
        """What to say of a call that the driver refused; ``sticky`` where this process is spent."""
        if error.code in STICKY:
            self._gpus.clear()  # nothing in this process can be given back any more
            return failed(error) | {"sticky": True}
        if error.code in UNLOADABLE:
            return skipped("not-supported", f"the driver cannot load kernels: {error}")
        if error.code in (OUT_OF_MEMORY, TAKEN):
            return skipped("busy", str(error)) | {"code": error.code}
        return failed(error)

    def _measured(self, step: MeasureStep) -> Fact:
        kind, bdf = step["key"].split(" ")[1], step["gpus"][0]
        if kind == "under-load":
            fact = under_load(self._gpus[bdf], self._clock, step, self._look)
            self._clocks[bdf] = fact.get("sm_clock")
            return fact
        fact = measure(step, self._gpus, self._clock)
        clock = self._clocks.get(bdf) if kind == "compute" else None
        return fact if clock is None else fact | {"clock_mhz": clock}  # of the same load a moment before

    def bind(self, step: MeasureStep) -> None:
        """Run on the CPUs of the first GPU's NUMA node: pinned memory comes from there."""
        cpus = set(step.get("cpus", ())) & self._all_cpus
        with suppress(OSError):
            os.sched_setaffinity(0, cpus or self._all_cpus)

    def _signed(self, fact: Fact) -> Fact:
        return fact | {"tool": TOOL, "how": self._how} if "value" in fact else fact


def _among(step: MeasureStep) -> list[str]:
    return [bdf for pair in step.get("with", ()) for bdf in pair]


def _bdf(driver: Driver, device: int) -> str:
    """``0000:06:00.0``; CUDA numbers devices in an order of its own."""
    text = ctypes.create_string_buffer(32)
    driver.call("cuDeviceGetPCIBusId", ctypes.addressof(text), len(text), device)
    return text.value.decode("ascii", "replace").lower()
