"""Measurements, whatever a GPU does: a worker that hangs or dies costs the step that it was at, not the run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

from dgxcheck.facts.missing import Gap, Json
from dgxcheck.workers import stuck_workers
from dgxcheck.workers.process import kill
from dgxcheck.workers.stream import LEAVING, Killer, Worker
from dgxcheck.workers.supervisor import LEAST_START_S, Supervisor, timeout

MODULE = "dgxcheck.workers.cuda.child"
LIBRARY = "libcuda.so.1"
START = "measure cuda all"
CLOSING = "closing"
MOST_TROUBLES = 2
"""So many steps of a GPU may hang or break before the rest of it is left."""
LISTEN_S = 0.2
MeasureStep = Mapping[str, Any]
Progress = Callable[[str, int], None]
"""Told the key that is measured now, and how many steps are done."""


class CudaStage:
    """Runs the steps of a plan, in as many workers one after another as it takes."""

    def __init__(self, seconds: float, library: str = LIBRARY, killer: Killer = kill, **plan: Json) -> None:
        """``seconds`` is the most for one step, 0 for no limit; ``plan`` goes to the worker as it is."""
        self._seconds = seconds or inf
        self._library = library
        self._killer = killer
        self._plan = plan
        self._troubles: dict[str, int] = {}
        self.facts: dict[str, Json] = {}
        """Key to fact, as far as it has come."""
        self._supervisor = Supervisor(killer)
        self._stop = False

    def run(self, steps: Sequence[MeasureStep], progress: Progress = lambda key, done: None) -> dict[str, Json]:
        """Measure; every step has a fact in the end, but after ``stop``."""
        left = list(steps)
        own: list[int] = []
        while left and not self._stop:
            if (stuck := stuck_workers.stuck(MODULE)) is not None:
                self.facts[START] = timeout(stuck)
                break
            plan = {"library": self._library, "steps": left, "own": own, **self._plan}
            worker = self._supervisor.start(MODULE, self._silence, json.dumps(plan))
            own.append(worker.pid)
            try:
                self._listen(worker, progress)
            finally:  # Ctrl-C ends the worker, too
                self._supervisor.end(worker, hung=worker.ended is None and worker.pending not in (None, CLOSING))
            if not isinstance(opened := self.facts.get(START), dict) or "value" not in opened:
                break
            left = self._left(left)
        self._supervisor.stop()
        return self.facts

    def fresh(self, **plan: Json) -> CudaStage:
        """One with nothing measured yet, with these members of the plan beside the old ones."""
        return CudaStage(self._seconds, self._library, self._killer, **{**self._plan, **plan})

    def stop(self) -> None:
        """End the run at the next chance; ``run`` returns with what there is."""
        self._stop = True

    def _listen(self, worker: Worker, progress: Progress) -> None:
        """Until the worker ends, or is silent for longer than a step may take."""
        while not self._stop:
            met = self._supervisor.next_event(time.monotonic() + LISTEN_S)
            self.facts.update((key, json.loads(text)) for key, text in worker.answers.items())
            worker.answers.clear()
            if met is not None:
                break
            if worker.pending not in (None, START, CLOSING):
                progress(str(worker.pending), len(self.facts))
        if worker.pending is not None and worker.pending != CLOSING and worker.ended != "done" and not self._stop:
            hung: Json = timeout(f"no answer for {self._seconds:g} s")
            died: Json = {"failed": worker.ended, "detail": "the process that measured"}
            self.facts[worker.pending] = hung if worker.ended is None else died

    def _left(self, steps: Sequence[MeasureStep]) -> list[MeasureStep]:
        """The steps that are still to do; those of GPUs and pairs in trouble are answered for."""
        broken = [step for step in steps if _trouble(self.facts.get(step["key"]))]
        for step in broken:
            for bdf in step["gpus"] if len(step["gpus"]) <= 2 else ():  # nobody knows which GPU of a ring it was
                alone = len(step["gpus"]) == 1
                self._troubles[bdf] = self._troubles.get(bdf, 0) + (MOST_TROUBLES + 1 if alone else 1)
        left = []
        for step in steps:
            if step["key"] in self.facts:
                continue
            after = next((each["key"] for each in broken if set(each["gpus"]) <= involved(step)), None)
            failing = next((bdf for bdf in sorted(involved(step)) if self._troubles.get(bdf, 0) > MOST_TROUBLES), None)
            if after is None and failing is None:
                left.append(step)
            else:
                why = f"given up after {after}" if after is not None else f"too many failures at {failing}"
                self.facts[step["key"]] = {"skipped": "dependency-failed", "detail": why}
        return left

    def _silence(self, worker: Worker) -> float:
        if worker.pending == CLOSING:
            return LEAVING
        return self._seconds if worker.pending != START and worker.spoke else max(self._seconds, LEAST_START_S)


def involved(step: MeasureStep) -> set[str]:
    """Bus ids of all GPUs that a step puts to work."""
    return {*step["gpus"], *(bdf for each in step.get("with", ()) for bdf in each)}


def _trouble(fact: Json) -> bool:
    """Did the step break the process, or take it all the time there was?"""
    if not isinstance(fact, dict):
        return False
    died = "failed" in fact and "code" not in fact
    return died or bool(fact.get("sticky")) or fact.get("missing") == Gap.TIMEOUT.value
