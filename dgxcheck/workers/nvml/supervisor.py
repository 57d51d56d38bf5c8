"""NVML's answers, whatever the driver does: one child for all, after trouble one per GPU, within the deadline."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Union

from dgxcheck.facts.ids import MOST_GPUS
from dgxcheck.facts.missing import NO_WORKER, Gap, Json, Missing, gap_from_json
from dgxcheck.workers import stuck_workers
from dgxcheck.workers.process import kill
from dgxcheck.workers.stream import Killer, Worker
from dgxcheck.workers.supervisor import Supervisor, init_limit, late, silence_limit, timeout

MODULE = "dgxcheck.workers.nvml.child"
INIT = "nvml nvmlInit"
COUNT = "nvml nvmlDeviceGetCount"
HANDLE = "nvml nvmlDeviceGetHandleByIndex "
MOST_HANGS = (2, 3)  # of one GPU; of pairs, where it takes two to see which GPU it is
MOST_DEATHS = 8
SHARES, LEAST_SHARE_S = 16, 1.0
"""Parts of the deadline of which one GPU may take one before the others go on without it."""
Unit = Union[str, int]  # noqa: UP007 -- an alias at run time


class NvmlStage:
    """Everything NVML is asked in one run. Started early; ``finish`` waits for it, within the deadline.

    A unit is what one child is for after trouble: a GPU by its index, all pairs of GPUs, or the system.
    """

    def __init__(self, groups: Sequence[str], deadline: float = 60.0, killer: Killer = kill) -> None:
        self.groups = tuple(groups)
        self._supervisor = Supervisor(killer)
        self.started = time.monotonic()
        self.deadline = deadline
        self.answers: dict[str, str] = {}
        """Key to JSON text; a gap is an object with ``missing``."""
        self._given_up: set[Unit] = set()
        self._troubles: dict[Unit, Missing] = {}
        """What happened to a unit first."""
        self._suspects: set[int] = set()
        """GPUs that are left out of pairs."""
        self._pairs_retried = False
        """Pairs were asked for once more."""
        self._in_pairs: dict[int, int] = {}
        """In how many pairs that got into trouble a GPU was."""
        self._index: dict[str, int] = {}
        """Index of a GPU by its bdf."""
        self._hangs: dict[Unit, int] = {}
        self._deaths: dict[Unit, int] = {}
        self._units_of: dict[Worker, list[Unit] | None] = {}
        """The units of each worker that runs; None for all."""
        self._at: dict[Worker, tuple[str, float]] = {}
        """The GPU that a worker asks now, and when it began to."""
        self._finished = False
        if (stuck := stuck_workers.stuck(MODULE)) is None:
            self._start(None)
        else:
            self._record_timeout(INIT, stuck)
            self._finished = True

    def missing(self, key: str, subject: str) -> Missing:
        """Why a question has no answer: what happened to its unit or GPUs, else no plan of this run held it."""
        where = key[5:]
        for unit in (self._unit(subject), *(self._unit(bdf) for bdf in subject.split(" "))):
            if (trouble := self._troubles.get(unit)) is not None:
                return trouble.of(where)
        return Missing(Gap.UNASKED, where)

    def finish(self) -> None:
        """Wait for every answer that comes within the deadline."""
        while not self._finished:
            if (worker := self._supervisor.next_event(self.started + self.deadline)) is None:
                self._out_of_time()
            else:
                self._take_event(worker)
            self._finished = self._finished or not (self._units_of or self._retry_pairs())

    def stop(self) -> None:
        """End every child; nothing more is wanted."""
        self._supervisor.stop()
        self._units_of.clear()
        self._finished = True

    def _start(self, units: list[Unit] | None) -> None:
        answers, avoid = self._known_answers(units), sorted(self._suspects)
        plan = {"groups": self.groups, "units": units, "known": answers, "avoid": avoid}
        self._units_of[self._supervisor.start(MODULE, self._silence, json.dumps(plan))] = units

    def _known_answers(self, units: list[Unit] | None) -> dict[str, Json]:
        """The answers that a child for these units has to know; all would be half a megabyte on a large box."""
        wanted = {"system", *(units or ())}
        keys = (key for key in self.answers if key.startswith((COUNT, HANDLE)) or self._unit_of(key) in wanted)
        return {key: json.loads(self.answers[key]) for key in keys}

    def _silence(self, worker: Worker) -> float:
        starting = not worker.spoke or worker.pending == INIT
        if not starting and self._is_slow(worker):
            return 0.0
        return init_limit(self.deadline) if starting else silence_limit(self.deadline)

    def _is_slow(self, worker: Worker) -> bool:
        """Has the worker for all units had answers of one GPU for longer than that GPU's share of the deadline?"""
        subject = " ".join(word for word in (worker.pending or "").split(" ") if ":" in word)
        if self._units_of.get(worker) is not None or not subject or " " in subject:
            return False
        if self._at.get(worker, ("", 0.0))[0] != subject:
            self._at[worker] = (subject, worker.heard)
        return worker.heard - self._at[worker][1] >= max(LEAST_SHARE_S, self.deadline / SHARES)

    def _take_event(self, worker: Worker) -> None:
        slow = worker.ended is None and self._is_slow(worker)
        units = self._units_of.pop(worker)
        self._supervisor.end(worker)
        self._store(worker.answers)
        if worker.ended == "done":
            self._refused(worker, units)
            return
        asked = worker.pending or INIT
        if slow:
            self._go_on_apart(asked)
            return
        what = worker.ended or f"no answer for {self._silence(worker):.3g} s"
        self._record_timeout(asked, what, worker.starved)
        code = NO_WORKER if worker.starved else None
        trouble = Missing(Gap.TIMEOUT, "", f"given up after {asked[5:]}: {what}", code)
        if units is None and asked in (INIT, COUNT):
            self._give_up(["system", "pairs"], trouble)
            return
        unit = units[0] if units is not None else self._unit_of(asked)
        counts, most = self._deaths, MOST_DEATHS
        if worker.ended is None:
            counts, most = self._hangs, MOST_HANGS[unit == "pairs"]
        counts[unit] = counts.get(unit, 0) + 1
        self._troubles.setdefault(unit, trouble)
        self._suspect(asked, unit)
        if asked in (INIT, f"{HANDLE}{unit}") or counts[unit] >= most:
            self._give_up([unit], trouble)
        for each in units if units is not None else self._units_from("system" if asked.startswith(HANDLE) else unit):
            if each not in self._given_up:
                self._start([each])

    def _go_on_apart(self, asked: str) -> None:
        """A GPU answers, but slowly: each unit goes on in a child of its own, so that the others need not wait."""
        unit = self._unit_of(asked)
        self._suspect(asked, unit)
        for each in self._units_from(unit):
            self._start([each])

    def _refused(self, worker: Worker, units: list[Unit] | None) -> None:
        """A child for one unit that was not let in again, by ``nvmlInit`` or for its handle, has asked nothing."""
        for unit in units or ():
            for key in (INIT, f"{HANDLE}{unit}"):
                answer: Json = json.loads(worker.answers.get(key, "null"))
                if isinstance(answer, dict):
                    gap = gap_from_json(answer, "")
                    again = f"when called again, {key[5:]} failed: {gap.detail}"
                    self._give_up([unit], Missing(gap.gap, gap.where, again, gap.code))

    def _suspect(self, asked: str, unit: Unit) -> None:
        """Leave a GPU that got into trouble out of pairs: alone, by its handle, or as part of two pairs that did."""
        if asked.startswith(HANDLE):
            self._suspects.add(int(asked[len(HANDLE) :]))
        elif isinstance(unit, int):
            self._suspects.add(unit)
        elif unit == "pairs":
            for gpu in (self._index[bdf] for bdf in asked.split(" ") if bdf in self._index):
                self._in_pairs[gpu] = self._in_pairs.get(gpu, 0) + 1
                if self._in_pairs[gpu] > 1:
                    self._suspects.add(gpu)

    def _retry_pairs(self) -> bool:
        """At the end, when it harms nobody: the pairs of GPUs that got into trouble and still answered the rest."""
        left = {gpu for gpu in self._suspects if gpu not in self._given_up}
        if not left or self._pairs_retried or "pairs" in self._given_up:
            return False
        self._pairs_retried = True
        self._suspects -= left
        self._start(["pairs"])
        return True

    def _units_from(self, unit: Unit) -> list[Unit]:
        """The unit in which the first child got into trouble, and all that would have come after it."""
        answer = self.answers.get(COUNT, "0")
        count = int(answer) if answer.isdecimal() else 0
        units: list[Unit] = ["system", *range(count if count <= MOST_GPUS else 0), "pairs"]
        return units[units.index(unit) :] if unit in units else units

    def _out_of_time(self) -> None:
        crowded = self._supervisor.crowded_out()
        reason = late("answered", self.deadline, crowded)
        trouble = Missing(Gap.TIMEOUT, "", reason, NO_WORKER if crowded else None)
        for worker, units in self._units_of.items():
            self._store(worker.answers)
            if worker.pending is not None:
                self._record_timeout(worker.pending, reason, crowded)
            self._give_up(self._units_from("system") if units is None else units, trouble)
            self._supervisor.end(worker, hung=True)
        self._record_timeout(INIT, reason, crowded)
        self._units_of.clear()
        self._finished = True

    def _store(self, answers: Mapping[str, str]) -> None:
        """What was answered before stays: ``nvmlInit`` and handles alone are asked again, to let a later child in."""
        for key, text in answers.items():
            self.answers.setdefault(key, text)
            if key.startswith(HANDLE) and text.startswith('"'):
                self._index.setdefault(json.loads(text), int(key[len(HANDLE) :]))

    def _record_timeout(self, key: str, detail: str, starved: bool = False) -> None:
        self.answers.setdefault(key, json.dumps(timeout(detail, starved)))

    def _give_up(self, units: Sequence[Unit], trouble: Missing) -> None:
        for unit in units:
            self._given_up.add(unit)
            self._troubles.setdefault(unit, trouble)

    def _unit_of(self, key: str) -> Unit:
        words = key.split(" ")
        if key.startswith(HANDLE):
            return int(words[2])
        return self._unit(" ".join(word for word in words[2:] if ":" in word))

    def _unit(self, subject: str) -> Unit:
        if " " in subject:
            return "pairs"
        if not subject:
            return "system"
        return self._index.get(subject, "system")
