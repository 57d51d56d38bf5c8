"""What NVML says beside a measurement: is the GPU idle before it, and how do link and clocks stand during it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from functools import partial
from typing import Any

from dgxcheck.facts.missing import Gap, Missing, members_of
from dgxcheck.package_files import table
from dgxcheck.workers.nvml import binding as calls

IDLE_PERCENT = 10
WAIT_S, POLL_S = 20.0, 0.5
"""As long as DCGM's nvbandwidth test waits for an idle GPU."""
_LOOKS = "workers/nvml/looks.tsv"


class NvmlSampler:
    """NVML in the process that measures; where it does not answer, nothing is known and nothing is stopped."""

    def __init__(self) -> None:
        self._handles: dict[str, Any] = {}
        if isinstance(calls.answer("nvmlInit", calls.init), Missing):
            return
        count = calls.answer("nvmlDeviceGetCount", lambda: calls.call("nvmlDeviceGetCount", (), ()))
        for index in range(count if isinstance(count, int) else 0):
            found = calls.answer("nvmlDeviceGetHandleByIndex", partial(calls.gpu_at, index))
            self._handles |= {} if isinstance(found, Missing) else {found[0]: found[1]}

    def busy(self, bdfs: list[str], seconds: float = WAIT_S, own: Collection[int] = ()) -> dict[str, str]:
        """Why GPUs cannot be measured, after a while in which their jobs might have ended; those missing are idle.

        ``own`` are pids of workers that were killed before: a driver can take its time to let them go.
        """
        until = time.monotonic() + seconds
        while True:
            found = {bdf: why for bdf in bdfs if (why := self._busy(bdf, own))}
            if not found or time.monotonic() >= until:
                return found
            time.sleep(POLL_S)

    def look(self, bdf: str) -> dict[str, Any]:
        """Link, clocks, throttle reasons, temperature (C) and power (W) now; None for what NVML does not tell."""
        return self._numbers(bdf, "look")

    def sample(self, bdf: str) -> dict[str, Any]:
        """A look, with volatile ECC errors (``dbe``, ``sbe``), ``replays``, ``margin`` (C); is it ``lost``?"""
        temperature = self._ask(bdf, "nvmlDeviceGetTemperature", 0)
        lost = isinstance(temperature, Missing) and temperature.gap is Gap.LOST
        return {**self.look(bdf), **self._numbers(bdf, "sample"), "lost": lost}

    def _busy(self, bdf: str, own: Collection[int]) -> str:
        answer = self._ask(bdf, "nvmlDeviceGetComputeRunningProcesses")
        processes = [each for each in answer if each["pid"] not in own] if isinstance(answer, list) else []
        if processes:
            return f"{len(processes)} compute process{'es' if len(processes) > 1 else ''}"
        percent = members_of(self._ask(bdf, "nvmlDeviceGetUtilizationRates")).get("memory")
        return f"its memory is {percent} % utilised" if isinstance(percent, int) and percent > IDLE_PERCENT else ""

    def _numbers(self, bdf: str, of: str) -> dict[str, float | None]:
        return {row["name"]: self._number(bdf, row) for row in table(_LOOKS, of)}

    def _number(self, bdf: str, row: Mapping[str, str]) -> float | None:
        answer = self._ask(bdf, row["function"], *map(int, row["args"].split()))
        if not isinstance(answer, int):
            return None
        return answer * float(row["factor"]) if row["factor"] else answer

    def _ask(self, bdf: str, function: str, *args: int) -> Any:
        if bdf not in self._handles:
            return None
        return calls.answer(function, lambda: calls.call(function, (self._handles[bdf],), args))
