"""NVML's answers, whatever the driver does: one child for all, after trouble one per GPU, within the deadline."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from typing import Union

from dgxcheck.reading import Gap, Missing
from dgxcheck.workers import left_behind
from dgxcheck.workers.process import kill
from dgxcheck.workers.stream import Killer, Worker, next_event

MODULE = "dgxcheck.workers.nvml_child"
INIT = "nvml nvmlInit"
COUNT = "nvml nvmlDeviceGetCount"
MOST_HANGS = 2
MOST_DEATHS = 8
Unit = Union[str, int]  # noqa: UP007 -- an alias at run time


def init_limit(deadline: float) -> float:
    """Seconds that nvmlInit may take: a cold 8-GPU box needs 10 to 25 s and is not hung."""
    return max(deadline - 3, deadline / 2)


def silence_limit(deadline: float) -> float:
    """Seconds after which any other question counts as hung."""
    return min(5.0, deadline / 4)


class NvmlStage:
    """Everything NVML is asked in one run. Started early; ``finish`` waits for it, within the deadline."""

    def __init__(self, groups: Sequence[str], deadline: float = 60.0, killer: Killer = kill) -> None:
        self._groups = list(groups)
        self._killer = killer
        self.started = time.monotonic()
        self.deadline = deadline
        self.answers: dict[str, str] = {}
        """Key to JSON text; a gap is an object with ``missing``."""
        self._given_up: dict[Unit, str] = {}
        self._hangs: dict[Unit, int] = {}
        self._deaths: dict[Unit, int] = {}
        self._running: dict[Worker, list[Unit] | None] = {}
        self._finished = False
        if (stuck := left_behind.stuck(MODULE)) is None:
            self._start(None)
        else:
            self._mark(INIT, stuck)
            self._finished = True

    def missing(self, key: str, subject: str) -> Missing:
        """Why a question has no answer: its unit was given up, or no plan of this run held it."""
        unit = self._unit(subject)
        reason = self._given_up.get(unit)
        where = key[5:]
        return Missing(Gap.TIMEOUT, where, reason) if reason else Missing(Gap.UNASKED, where)

    def finish(self) -> None:
        """Wait for every answer that comes within the deadline."""
        while not self._finished:
            ends = self.started + self.deadline
            worker = next_event(list(self._running), self._silence, ends)
            if worker is None:
                self._out_of_time()
            else:
                self._heard(worker)
            self._finished = self._finished or not self._running

    def stop(self) -> None:
        """End every child at once; nothing more is wanted."""
        for worker in self._running:
            worker.stop()
        self._running.clear()
        self._finished = True

    def _start(self, units: list[Unit] | None) -> None:
        avoid = [unit for unit in {*self._given_up, *self._hangs} if isinstance(unit, int)]
        known = {key: json.loads(text) for key, text in self.answers.items()} if self.answers else {}
        plan = {"groups": self._groups, "units": units, "known": known, "avoid": avoid}
        self._running[Worker(MODULE, json.dumps(plan), self._killer)] = units

    def _silence(self, worker: Worker) -> float:
        starting = worker.pending is None and not worker.answers
        return init_limit(self.deadline) if starting or worker.pending == INIT else silence_limit(self.deadline)

    def _heard(self, worker: Worker) -> None:
        units = self._running.pop(worker)
        worker.stop()
        self.answers.update(worker.answers)
        if worker.ended == "done":
            return
        asked = worker.pending or INIT
        hung = worker.ended is None
        limit = self._silence(worker)
        trouble = f"no answer for {limit:.3g} s" if hung else f"died: {worker.ended}"
        self._mark(asked, trouble)
        if asked in (INIT, COUNT) and units is None:
            self._give_up(["system", "pairs"], f"{asked[5:]}: {trouble}")
            return
        unit = units[0] if units and len(units) == 1 else self._unit_of_key(asked)
        counts, most = (self._hangs, MOST_HANGS) if hung else (self._deaths, MOST_DEATHS)
        counts[unit] = counts.get(unit, 0) + 1
        if counts[unit] >= most or asked == INIT:
            self._give_up([unit], f"given up after {asked[5:]}: {trouble}")
        left = self._units_from(unit) if units is None else units
        for each in left:
            if each not in self._given_up:
                self._start([each])

    def _units_from(self, unit: Unit) -> list[Unit]:
        """The unit in which the first child got into trouble, and all that would have come after it."""
        count = self.answers.get(COUNT, "0")
        units: list[Unit] = ["system", *range(int(count) if count.isdecimal() else 0), "pairs"]
        return units[units.index(unit) :] if unit in units else units

    def _out_of_time(self) -> None:
        reason = f"not answered within the deadline of {self.deadline:g} s"
        for worker, units in list(self._running.items()):
            self.answers.update(worker.answers)
            if worker.pending is not None:
                self._mark(worker.pending, reason)
            self._give_up(self._units_from("system") if units is None else units, reason)
        if INIT not in self.answers:
            self._mark(INIT, reason)
        self.stop()

    def _mark(self, key: str, detail: str) -> None:
        self.answers[key] = json.dumps({"missing": Gap.TIMEOUT.value, "detail": detail})

    def _give_up(self, units: Sequence[Unit], reason: str) -> None:
        for unit in units:
            self._given_up.setdefault(unit, reason)

    def _unit_of_key(self, key: str) -> Unit:
        words = key.split(" ")
        if words[1] == "nvmlDeviceGetHandleByIndex":
            return int(words[2])
        return self._unit(" ".join(word for word in words[2:] if ":" in word))

    def _unit(self, subject: str) -> Unit:
        if " " in subject:
            return "pairs"
        if not subject:
            return "system"
        for key, text in self.answers.items():
            if text == f'"{subject}"' and key.startswith("nvml nvmlDeviceGetHandleByIndex "):
                return int(key.rpartition(" ")[2])
        return "system"
