"""The watch over a burn-in: one worker that asks NVML about all GPUs once a second."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dgxcheck.measure.burn_in.events import Events
from dgxcheck.measure.burn_in.result import BurnInResult
from dgxcheck.measure.burn_in.stop_rules import HELD_S, Limits, Sample, Stop, grown, of_samples
from dgxcheck.workers.stream import Worker
from dgxcheck.workers.supervisor import LEAST_START_S, Kind, Supervisor

MODULE = "dgxcheck.workers.cuda.sampler_child"
IDLE = "idle"
EVERY_S = 1.0
UNWATCHED_S = 30.0
"""Without a sample for so long the load ends: nobody would see a GPU overheat."""


class Watch:
    """Its samples, and what they end the load for."""

    def __init__(
        self, gpus: Sequence[str], files: Mapping[str, str], wait_s: float, known: Limits, events: Events,
        supervisor: Supervisor,
    ) -> None:  # fmt: skip
        """``wait_s`` is how long jobs may take to end, ``files`` are counters of PCIe errors by name."""
        self._known, self._events = known, events
        plan = {"gpus": list(gpus), "files": dict(files), "every_s": EVERY_S, "wait_s": wait_s}
        self.worker: Worker | None = supervisor.start(Kind(MODULE, self._silence), json.dumps(plan))
        self.first: Sample | None = None
        """Taken before any load."""
        self.busy: Mapping[str, str] = {}
        """Why GPUs are not to be loaded; known before the first sample."""
        self._recent: deque[Sample] = deque(maxlen=8 * int(HELD_S))
        self._aer: dict[str, Any] = {}

    def take(self, loaded: Iterable[BurnInResult], settled_s: float) -> Stop | None:
        """Take in what was said; clocks of the ``loaded`` GPUs count from ``settled_s`` seconds under load on."""
        if self.worker is None:
            return None
        stop: Stop | None = None
        under_load = [*loaded]
        for key, text in self.worker.answers.items():
            if key == IDLE:
                self.busy = json.loads(text)
                continue
            sample = json.loads(text)
            self.first = self.first or sample
            self._recent.append(sample)
            self._take_aer(sample["aer"])
            at = self._events.since(sample["at"])
            for seen in under_load if self._events.begun is not None else ():
                seen.sample(sample["gpus"].get(seen.bdf, {}), at >= settled_s)
            stop = stop or of_samples(self.first, self._recent, self._known)
            self._events.listener.sample(at, sample)
        self.worker.answers.clear()
        return stop

    def _silence(self, worker: Worker) -> float:
        return UNWATCHED_S if self.first is not None else LEAST_START_S

    def lost(self, worker: Worker) -> Stop:
        """The worker ended, or is silent."""
        self.worker = None
        why = worker.ended or f"no sample for {UNWATCHED_S:g} s"
        return Stop("unwatched", "", f"NVML is not looked at any more: {why}")

    def of(self, bdf: str) -> Mapping[str, Any]:
        """A GPU before the load."""
        row: Mapping[str, Any] = (self.first or {}).get("gpus", {}).get(bdf, {})
        return row

    def _take_aer(self, totals: Mapping[str, Any]) -> None:
        for name in totals:
            if more := grown(self._aer, totals, name):
                bdf, _, severity = name.partition(" ")
                status = "fail" if severity == "fatal" else "warn"
                self._events.note("aer", bdf, f"{severity} PCIe errors of {bdf} grew by {more}", status)
        self._aer |= {name: total for name, total in totals.items() if total is not None}
