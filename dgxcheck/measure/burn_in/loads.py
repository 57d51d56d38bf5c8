"""The loads of a burn-in: a worker per GPU, so that one that hangs or dies ends no other."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any

from dgxcheck.measure.burn_in.events import Events
from dgxcheck.measure.burn_in.plan import GpuLoad, matched
from dgxcheck.measure.burn_in.result import BurnInResult
from dgxcheck.workers.stream import Worker
from dgxcheck.workers.supervisor import LEAST_START_S, Supervisor, timeout

MODULE = "dgxcheck.workers.cuda.load_child"
START, FAILED, CLOSING, PEER = "start", "failed", "closing", "peer"
CYCLE_UNITS = 7
UNIT_S = 1.0
"""A cycle is so many units of time; at least three cycles fit into the whole."""


class LoadWorkers:
    """A worker per GPU that keeps it under load, and the results so far."""

    def __init__(
        self, loads: Sequence[GpuLoad], seconds: float, silence_s: float, library: str, events: Events,
        supervisor: Supervisor,
    ) -> None:  # fmt: skip
        """``seconds`` is the time for all, ``silence_s`` how long a load may say nothing (0: for ever)."""
        self._loads = {load.gpu: load for load in loads}
        self._peers: Mapping[str, str] = {}
        self._begin = 0.0
        self.results = {load.gpu: BurnInResult(load.gpu) for load in loads}
        self._unit = min(UNIT_S, seconds / (3 * CYCLE_UNITS))
        self.silence_s = max(silence_s or inf, 10 * self._unit)
        self._library, self._events, self._supervisor = library, events, supervisor
        self.workers: dict[Worker, BurnInResult] = {}
        self.ending = False
        """The burn-in is ending: no worker is restarted."""

    def begin(self, busy: Collection[str]) -> None:
        """Start the common schedule of turns; GPUs that are ``busy`` get no peer traffic."""
        self._begin = time.monotonic()
        self._peers = matched([*self._loads.values()], busy)

    def launch(self, bdf: str, alone: bool = False) -> None:
        """Put a GPU under load; ``alone``: without traffic to a peer."""
        peers = [self._peers[bdf]] if bdf in self._peers and not alone else []
        plan = {"library": self._library, "gpu": bdf, "peers": peers, "cpus": list(self._loads[bdf].cpus),
                "begin": self._begin, "unit_s": self._unit}  # fmt: skip
        self.workers[self._supervisor.start(MODULE, self.silence, json.dumps(plan))] = self.results[bdf]

    @property
    def waiting_for_start(self) -> bool:
        """Is a worker not under load yet?"""
        return any(not result.start for result in self.workers.values())

    @property
    def current_turn(self) -> str:
        """The turn of the first GPU, or ``waiting``."""
        pending = next((worker.pending for worker in self.workers if worker.pending), None)
        return (pending or "").partition(" ")[0] or "waiting"

    def read_answers(self) -> None:
        """Record the new answers of all workers."""
        for worker, result in self.workers.items():
            for key, text in worker.answers.items():
                self._record(result, key.partition(" ")[0], json.loads(text))
            worker.answers.clear()

    def worker_ended(self, worker: Worker) -> None:
        """A worker ended, or is silent for too long: it is no part of the crew any more."""
        result = self.workers.pop(worker)
        if worker.ended == "done" or worker.pending == CLOSING:
            ended_turn = result.turn_ended
        else:
            self._load_died(worker, result)
            ended_turn = "" if worker.ended is None else result.turn_ended
        if ended_turn == PEER and not result.with_peer and not self.ending:
            result.with_peer, result.ended, result.turn_ended = result.ended, "", ""
            self.launch(result.bdf, alone=True)

    def silence(self, worker: Worker) -> float:
        """Seconds without output after which the worker counts as hung, in its present state."""
        return max(self.silence_s, LEAST_START_S) if self.is_opening_cuda(worker) else self.silence_s

    def is_opening_cuda(self, worker: Worker) -> bool:
        """Has the worker not opened CUDA yet?"""
        return worker.pending == START or not worker.spoke

    def _record(self, result: BurnInResult, name: str, fact: Mapping[str, Any]) -> None:
        if name == START:
            result.start = result.start or fact
            if "value" not in fact:
                self._events.note("no-load", result.bdf, _reason(fact))
        elif name == FAILED:
            self._load_failed(result, fact)
        elif "failed" in fact:
            self._events.note("note", result.bdf, f"turn {name} left out from now on: {_reason(fact)}")
        elif wrong := result.turn(name, fact):
            words = f"{wrong} wrong word{'' if wrong == 1 else 's'} in turn {name}"
            self._events.note("wrong-words", result.bdf, words, "fail")

    def _load_failed(self, result: BurnInResult, fact: Mapping[str, Any]) -> None:
        """Record an error of the driver: before the load began it never ran, after that it ended the load."""
        if result.start:
            result.turn_ended = str(fact.get("turn") or "")
            result.ended = f"{_reason(fact)} in turn {result.turn_ended}"
        else:
            result.start = fact
        self._events.note("load-ended", result.bdf, result.ended or _reason(fact), "fail" if "failed" in fact else "")

    def _load_died(self, worker: Worker, result: BurnInResult) -> None:
        """Record a load that hung or died."""
        if result.ended or "failed" in result.start:
            return
        why = worker.ended or f"hung: no answer for {time.monotonic() - worker.heard:.0f} s"
        if result.start:
            result.turn_ended = (worker.pending or "").partition(" ")[0]
            result.ended = f"{why} in turn {result.turn_ended}" if result.turn_ended else why
        elif worker.ended is None:
            result.start = timeout(f"CUDA did not open: {why}")
        else:
            result.start = {"failed": why, "detail": "load process"}
        self._events.note("load-ended", result.bdf, result.ended or why, "fail")


def _reason(fact: Mapping[str, Any]) -> str:
    return ": ".join(str(fact[name]) for name in ("skipped", "failed", "missing", "detail") if fact.get(name))
