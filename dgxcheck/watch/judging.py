"""When the machine is judged next, and what a judgement says that the last one did not."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from math import inf
from typing import Any

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.record import replace
from dgxcheck.source import state_file
from dgxcheck.watch.children import JUDGEMENT, NVML_EVENTS, OPENING_S, Children
from dgxcheck.watch.dispatcher import Dispatcher
from dgxcheck.watch.memory import COUNTERS, compared
from dgxcheck.watch.plan import Plan

SETTLED_S = 120.0
"""After boot: before, ports are still down and GPUs not registered with the fabric."""
SOON_S, LEAST_BETWEEN_S = 10.0, 60.0
"""After trouble the machine is judged this soon, but not more often than that."""
PERSISTENCE_OFF_S = 3600.0
"""Between judgements where each one makes the driver load and unload its state, which has frozen GPUs: a client that
ends while the driver tears down (github.com/NVIDIA/dcgm-exporter/issues/84)."""


class Judging:
    """Starts a worker that judges, as often as the plan says."""

    def __init__(self, plan: Plan, dispatcher: Dispatcher, workers: Children) -> None:
        self._plan, self._dispatcher, self._workers = plan, dispatcher, workers
        self._next, self._last = SETTLED_S, -inf  # CLOCK_MONOTONIC counts from boot
        self._persistence: bool | None = None
        self._wished = False
        """Did something happen since the last one began?"""

    @property
    def due(self) -> float | None:
        """When the next judgement begins (monotonic); None if none will."""
        return self._next if self._plan.judge_s and not self._workers.running(JUDGEMENT) else None

    def turn(self) -> None:
        """Start one if it is due."""
        now = time.monotonic()
        if self.due is None or now < self.due:
            return
        plan, known = self._plan, self._dispatcher.memory.judged.findings
        beside = os.path.join(os.path.dirname(plan.state), COUNTERS)
        reported = {"root": plan.root, "profile": plan.profile, "config": plan.config, "deadline": plan.deadline,
                "state": beside, "known": [*known]}  # fmt: skip
        if not self._workers.start(JUDGEMENT, reported, plan.deadline + OPENING_S):
            self._next = now + LEAST_BETWEEN_S
            return
        self._last, self._next, self._wished = now, now + self._every_s(), False

    def soon(self) -> None:
        """Something happened that a judgement explains."""
        if self._every_s() <= self._plan.judge_s:
            self._wished = True
            self._next = min(self._next, max(time.monotonic() + SOON_S, self._last + LEAST_BETWEEN_S))

    def take(self, document: Mapping[str, Any]) -> None:
        """The answer of the worker."""
        dispatcher = self._dispatcher
        if trouble := document.get("trouble"):
            dispatcher.note("state", trouble, Status.WARN)
        if "error" in document:
            dispatcher.note("judgement", document["error"], Status.UNKNOWN)
            return
        judged, events = compared(dispatcher.memory.judged, document)
        dispatcher.memory.judged = replace(judged, date=state_file.now()[1])
        dispatcher.memory.of_gpus(document["uuids"])
        self._persistence, before = document["persistence"], self._persistence
        if not self._wished:
            self._next = self._last + self._every_s()
        if self._persistence is False and before is not False and self._every_s() > self._plan.judge_s:
            every = f"one every {PERSISTENCE_OFF_S / 60:g} min"
            dispatcher.note("persistence", f"persistence mode is off: each judgement makes the driver load, so {every}")
        dispatcher.changed()
        dispatcher.tell(events)

    def _every_s(self) -> float:
        """A worker that stays in NVML keeps the driver's state loaded."""
        if self._persistence is not False or self._workers.running(NVML_EVENTS):
            return self._plan.judge_s
        return max(self._plan.judge_s, PERSISTENCE_OFF_S)
