"""The workers of the watch: counters all the time, a judgement now and then, NVML's events where the log is closed."""

from __future__ import annotations

import json
import select
import time
from collections.abc import Iterator, Mapping
from math import inf
from typing import Any

from dgxcheck.facts.record import Record
from dgxcheck.workers.stream import Worker
from dgxcheck.workers.supervisor import Supervisor

COUNTERS = "dgxcheck.watch.counters_child"
JUDGEMENT = "dgxcheck.watch.judgement_child"
NVML_EVENTS = "dgxcheck.workers.nvml.events_child"
NAMES = {COUNTERS: "counters", JUDGEMENT: "judgement", NVML_EVENTS: "NVML events"}
READING_S = 30.0
"""Seconds that one reading of the counters may take."""
OPENING_S = 120.0
"""Seconds that opening the driver on a cold box, or judging beyond the driver's deadline, may take."""
RETRY_S = 600.0
"""A worker that hung or died is replaced after this time."""


class Answer(Record, kw_only=False):
    """What a worker said."""

    module: str
    key: str
    value: Any


class Trouble(Record, kw_only=False):
    """A worker that hung, died or could not be started."""

    module: str
    text: str


class Children:
    """At most one worker of each kind."""

    def __init__(self) -> None:
        self._supervisor = Supervisor()
        self._workers: dict[str, Worker] = {}
        self._silence: dict[str, float] = {}
        self._not_before: dict[str, float] = {}
        self._said: list[Trouble] = []
        """What ``take`` has still to give."""

    def start(self, module: str, plan: Mapping[str, Any], silence_s: float) -> bool:
        """Start one unless one runs, failed a short while ago, or one that hung cannot be killed."""
        now = time.monotonic()
        if module in self._workers or now < self._not_before.get(module, -inf):
            return False
        if module in self._supervisor.reap():
            self._retry(module, "one that hung cannot be killed")
            return False
        self._silence[module] = silence_s
        worker = self._supervisor.start(module, lambda each: self._silence[each.module], json.dumps(plan))
        self._workers[module] = worker
        return True

    def running(self, module: str) -> bool:
        return module in self._workers

    def watch(self, poll: select.poll) -> None:
        """Wake up for what any of them says."""
        self._supervisor.watch(poll)

    def take(self) -> Iterator[Answer | Trouble]:
        """What they said since, and which of them ended badly. Never waits."""
        while True:
            ended = self._supervisor.next_event(0.0)
            for module, worker in self._workers.items():
                yield from (Answer(module, key, json.loads(text)) for key, text in worker.answers.items())
                worker.answers.clear()
            if ended is not None:
                self._end(ended)
            said, self._said = self._said, []
            yield from said
            if ended is None:
                return

    def stop(self) -> None:
        """End all of them."""
        self._supervisor.stop()
        self._workers.clear()

    def _end(self, worker: Worker) -> None:
        del self._workers[worker.module]
        self._supervisor.end(worker)
        if worker.ended != "done":
            self._retry(worker.module, worker.ended or f"no answer for {self._silence[worker.module]:g} s")
        elif worker.module != JUDGEMENT:  # one that stays has said why it does not
            self._not_before[worker.module] = time.monotonic() + RETRY_S

    def _retry(self, module: str, why: str) -> None:
        self._not_before[module] = time.monotonic() + RETRY_S
        self._said.append(Trouble(module, f"{NAMES[module]}: {why}; next try in {RETRY_S / 60:g} min"))
