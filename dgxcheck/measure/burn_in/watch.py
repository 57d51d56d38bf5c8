"""Monitoring of a burn-in: one worker that samples all GPUs through NVML once a second."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dgxcheck.measure.burn_in.events import Events
from dgxcheck.measure.burn_in.result import BurnInResult
from dgxcheck.measure.burn_in.stop_rules import (
    HELD_S,
    UNWATCHED_S,
    Sample,
    SlowdownThresholds,
    Stop,
    grown,
    has_temperature,
    stop_for_samples,
)
from dgxcheck.workers.stream import Worker
from dgxcheck.workers.supervisor import LEAST_START_S, Supervisor

MODULE = "dgxcheck.workers.cuda.sampler_child"
IDLE = "idle"
EVERY_S = 1.0


class Watch:
    """The monitoring worker and its samples."""

    def __init__(
        self, gpus: Sequence[str], files: Mapping[str, str], wait_s: float, limits: SlowdownThresholds, events: Events,
        supervisor: Supervisor,
    ) -> None:  # fmt: skip
        """``wait_s`` is how long jobs may take to end, ``files`` are counters of PCIe errors by name."""
        self._limits, self._events = limits, events
        plan = {"gpus": list(gpus), "files": dict(files), "every_s": EVERY_S, "wait_s": wait_s}
        self.worker: Worker | None = supervisor.start(MODULE, self._silence, json.dumps(plan))
        self.first: Sample | None = None
        """The sample before any load."""
        self.busy: Mapping[str, str] = {}
        """GPUs in use by other programs, with the reason, by bus id; known before the first sample."""
        self._recent: deque[Sample] = deque(maxlen=8 * int(HELD_S))
        self._aer: dict[str, Any] = {}

    def read_samples(self, loaded: Iterable[BurnInResult], settled_s: float) -> Stop | None:
        """Read the new samples; clocks of the ``loaded`` GPUs count from ``settled_s`` seconds under load on."""
        if self.worker is None:
            return None
        stop: Stop | None = None
        under_load = [*loaded]
        for key, text in self.worker.answers.items():
            if key == IDLE:
                self.busy = json.loads(text)
                continue
            sample = json.loads(text)
            if self.first is None:
                self.first = sample
                self._note_blind(sample)
            self._recent.append(sample)
            self._take_aer(sample["aer"])
            at = self._events.since(sample["at"])
            for result in under_load if self._events.load_start is not None else ():
                result.sample(sample["gpus"].get(result.bdf, {}), at >= settled_s)
            stop = stop or stop_for_samples(self.first, self._recent, self._limits)
            self._events.listener.sample(at, sample)
        self.worker.answers.clear()
        return stop

    def _note_blind(self, sample: Sample) -> None:
        for bdf, row in sample["gpus"].items():
            if not has_temperature(row):
                self._events.note("note", bdf, "no temperature: the load would not end before a slowdown")

    def _silence(self, worker: Worker) -> float:
        return UNWATCHED_S if self.first is not None else LEAST_START_S

    def worker_ended(self, worker: Worker) -> Stop:
        """The worker ended or timed out: the burn-in must stop."""
        self.worker = None
        why = worker.ended or f"no sample for {UNWATCHED_S:g} s"
        return Stop("unwatched", "", f"NVML monitoring stopped: {why}")

    def before_load(self, bdf: str) -> Mapping[str, Any]:
        """The sample of a GPU before the load."""
        row: Mapping[str, Any] = (self.first or {}).get("gpus", {}).get(bdf, {})
        return row

    def _take_aer(self, totals: Mapping[str, Any]) -> None:
        for name in totals:
            if growth := grown(self._aer, totals, name):
                bdf, _, severity = name.partition(" ")
                text = f"{growth} new {severity} PCIe error{'' if growth == 1 else 's'} on {bdf}"
                self._events.note("aer", bdf, text, "fail" if severity == "fatal" else "warn")
        self._aer |= {name: total for name, total in totals.items() if total is not None}
