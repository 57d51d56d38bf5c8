"""Driver-backed files, whatever the driver does: a worker that hangs is replaced, within the deadline."""

from __future__ import annotations

import json
import time

from dgxcheck.facts.missing import Gap, Json
from dgxcheck.workers import stuck_workers
from dgxcheck.workers.files.driver_backed import device_of, questions_with
from dgxcheck.workers.process import kill
from dgxcheck.workers.stream import Killer, Worker
from dgxcheck.workers.supervisor import Supervisor, init_limit, late, silence_limit, timeout

MODULE = "dgxcheck.workers.files.child"
MOST_TROUBLES = 8
_TOO_MANY = "too many driver-backed files hung before this one"


class FilesStage:
    """Answers to ``text``, ``data`` and ``opens`` of driver-backed files. The worker starts with the first question."""

    def __init__(self, root: str, deadline: float = 60.0, killer: Killer = kill) -> None:
        self._root = "" if root == "/" else root
        self._supervisor = Supervisor(killer)
        self.deadline = deadline
        self.spent = 0.0
        """Seconds waited for drivers so far; the deadline is for all of them together."""
        self._worker: Worker | None = None
        self._ended = 0
        """Workers that were ended because one of their files hung or killed them."""
        self._answers: dict[str, str] = {}
        self._done: set[str] = set()
        """Questions that a worker went through to the end."""
        self._hung: dict[str, str] = {}
        """Device directories that hung or killed a worker, and the gap for the rest of their files."""
        self._refusal: str | None = None
        """The gap of all further questions, where no worker is started any more."""

    def start(self) -> None:
        """Start the worker before the first question, where there will be one: it is ready by then."""
        if self._worker is None and stuck_workers.stuck(MODULE) is None:
            self._worker = self._start()

    def ask(self, question: str) -> Json:
        """The JSON value of ``text PATH``, ``data PATH`` (hexadecimal) or ``opens PATH``; a gap as an object."""
        if question not in self._answers:
            before = time.monotonic()
            why = self._request([each for each in questions_with(question) if each not in self._done])
            self.spent += time.monotonic() - before
            # a pattern was answered, and this file is not among what it stands for
            absent = json.dumps({"missing": Gap.ABSENT.value})
            self._answers.setdefault(question, self._hung.get(device_of(question), why) or absent)
        value: Json = json.loads(self._answers[question])
        return value

    def stop(self) -> None:
        """End the worker; nothing more is wanted."""
        self._supervisor.stop()
        self._worker = None

    def _start(self, plan: str | None = None) -> Worker:
        return self._supervisor.start(MODULE, self._silence, plan)

    def _request(self, questions: list[str]) -> str | None:
        """Have the questions answered; the gap of those that were not, or None."""
        ends = time.monotonic() + self.deadline - self.spent
        while questions:
            if self._worker is None and self._refusal is None:
                many_hung = _TOO_MANY if len(self._hung) >= MOST_TROUBLES else None
                why = many_hung if self._ended else stuck_workers.stuck(MODULE)
                self._refusal = None if why is None else _gap(why)
            if self._refusal is not None:
                return self._refusal
            if time.monotonic() >= ends:
                crowded = self._supervisor.crowded_out()
                return _gap(late("asked", self.deadline, crowded), crowded)
            line = json.dumps({"root": self._root, "ask": questions, "avoid": list(self._hung)})
            if self._worker is None:
                self._worker = self._start(line)
            else:
                self._worker.tell(line)
            if self._answered(self._worker, ends):
                self._done.update(questions)
                return None
        return None

    def _answered(self, worker: Worker, ends: float) -> bool:
        in_time = self._supervisor.next_event(ends) is not None
        self._answers.update(worker.answers)
        worker.answers.clear()
        if worker.ended == "done":
            return True
        starved, trouble = worker.starved, worker.ended or f"no answer for {self._silence(worker):.3g} s"
        if not in_time:
            starved = self._supervisor.crowded_out()
            trouble = late("answered", self.deadline, starved)
        if (asked := worker.pending) is not None:
            self._answers[asked] = _gap(trouble, starved)
            self._hung[device_of(asked)] = _gap(f"given up after {asked}: {trouble}", starved)
        elif in_time and self._ended:
            self._refusal = _gap(trouble, starved)
        self._supervisor.end(worker)
        self._worker = None
        self._ended += 1
        return False

    def _silence(self, worker: Worker) -> float:
        return silence_limit(self.deadline) if worker.spoke else init_limit(self.deadline)


def _gap(detail: str, starved: bool = False) -> str:
    return json.dumps(timeout(detail, starved))
