"""The loads of a burn-in: a worker per GPU, so that one that hangs or dies ends no other."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any

from dgxcheck.measure.burn_in.events import Events
from dgxcheck.measure.burn_in.plan import Load, matched
from dgxcheck.measure.burn_in.result import BurnInResult
from dgxcheck.workers.stream import Worker
from dgxcheck.workers.supervisor import LEAST_START_S, Kind, Supervisor, timeout

MODULE = "dgxcheck.workers.cuda.load_child"
START, FAILED, CLOSING, PEER = "start", "failed", "closing", "peer"
CYCLE_UNITS = 7
UNIT_S = 1.0
"""A cycle is so many units of time; at least three cycles fit into the whole."""


class LoadWorkers:
    """A worker per GPU that keeps it under load, and the results so far."""

    def __init__(
        self, loads: Sequence[Load], seconds: float, silence_s: float, library: str, events: Events,
        supervisor: Supervisor,
    ) -> None:  # fmt: skip
        """``seconds`` is the time for all, ``silence_s`` how long a load may say nothing (0: for ever)."""
        self._loads = {load.gpu: load for load in loads}
        self._peers: Mapping[str, str] = {}
        self._begin = 0.0
        self.seen = {load.gpu: BurnInResult(load.gpu) for load in loads}
        self._unit = min(UNIT_S, seconds / (3 * CYCLE_UNITS))
        self.silence_s = max(silence_s or inf, 10 * self._unit)
        self._library, self._events, self._supervisor = library, events, supervisor
        self.workers: dict[Worker, BurnInResult] = {}
        self.ending = False
        """Nothing is begun anew."""

    def begin(self, busy: Collection[str]) -> None:
        """From now on the turns of all GPUs are counted; those that are ``busy`` are nobody's neighbours."""
        self._begin = time.monotonic()
        self._peers = matched([*self._loads.values()], busy)

    def launch(self, bdf: str, alone: bool = False) -> None:
        """Put a GPU under load; ``alone`` without traffic to a neighbour."""
        peers = [self._peers[bdf]] if bdf in self._peers and not alone else []
        plan = {"library": self._library, "gpu": bdf, "peers": peers, "cpus": list(self._loads[bdf].cpus),
                "begin": self._begin, "unit_s": self._unit}  # fmt: skip
        self.workers[self._supervisor.start(Kind(MODULE, self.silence), json.dumps(plan))] = self.seen[bdf]

    @property
    def opening(self) -> bool:
        """Is one of them not under load yet?"""
        return any(not seen.start for seen in self.workers.values())

    @property
    def doing(self) -> str:
        """The turn of the first GPU."""
        pending = next((worker.pending for worker in self.workers if worker.pending), None)
        return (pending or "").partition(" ")[0] or "waiting"

    def take(self) -> None:
        """Take in what they said."""
        for worker, seen in self.workers.items():
            for key, text in worker.answers.items():
                self._take(seen, key.partition(" ")[0], json.loads(text))
            worker.answers.clear()

    def met(self, worker: Worker) -> None:
        """A worker ended, or is silent for too long: it is no part of the crew any more."""
        seen = self.workers.pop(worker)
        if worker.ended == "done" or worker.pending == CLOSING:
            broken = seen.turn_ended
        else:
            self._blame(worker, seen)
            broken = "" if worker.ended is None else seen.turn_ended
        if broken == PEER and not seen.with_peer and not self.ending:
            seen.with_peer, seen.ended, seen.turn_ended = seen.ended, "", ""
            self.launch(seen.bdf, alone=True)

    def silence(self, worker: Worker) -> float:
        """How long it may say nothing now."""
        return max(self.silence_s, LEAST_START_S) if self.opens(worker) else self.silence_s

    def opens(self, worker: Worker) -> bool:
        """Is it still about to open CUDA?"""
        return worker.pending == START or not worker.spoke

    def _take(self, seen: BurnInResult, name: str, fact: Mapping[str, Any]) -> None:
        if name == START:
            seen.start = seen.start or fact
            if "value" not in fact:
                self._events.note("no-load", seen.bdf, _why(fact))
        elif name == FAILED:
            self._failed(seen, fact)
        elif "failed" in fact:
            self._events.note("note", seen.bdf, f"no more of turn {name}: {_why(fact)}")
        elif wrong := seen.turn(name, fact):
            self._events.note("wrong-words", seen.bdf, f"{wrong} wrong words in turn {name}", "fail")

    def _failed(self, seen: BurnInResult, fact: Mapping[str, Any]) -> None:
        """The driver refused something: before the load began nothing was burnt, after it the load ended for that."""
        if seen.start:
            seen.turn_ended = str(fact.get("turn") or "")
            seen.ended = f"{_why(fact)} in turn {seen.turn_ended}"
        else:
            seen.start = fact
        self._events.note("load-ended", seen.bdf, seen.ended or _why(fact), "fail" if "failed" in fact else "")

    def _blame(self, worker: Worker, seen: BurnInResult) -> None:
        """A load that hung or died."""
        if seen.ended or "failed" in seen.start:
            return
        why = worker.ended or f"hung: no answer for {time.monotonic() - worker.heard:.0f} s"
        if seen.start:
            seen.turn_ended = (worker.pending or "").partition(" ")[0]
            seen.ended = f"{why} in turn {seen.turn_ended}" if seen.turn_ended else why
        elif worker.ended is None:
            seen.start = timeout(f"CUDA did not open: {why}")
        else:
            seen.start = {"failed": why, "detail": "the process that loads it"}
        self._events.note("load-ended", seen.bdf, seen.ended or why, "fail")


def _why(fact: Mapping[str, Any]) -> str:
    return ": ".join(str(fact[name]) for name in ("skipped", "failed", "missing", "detail") if fact.get(name))
