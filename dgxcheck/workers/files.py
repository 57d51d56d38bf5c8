"""Driver-backed files, whatever the driver does: a worker that hangs is replaced, within the deadline."""

from __future__ import annotations

import json
import time

from dgxcheck.reading import Gap, Json
from dgxcheck.workers import left_behind
from dgxcheck.workers.files_plan import device_of, together
from dgxcheck.workers.nvml import silence_limit
from dgxcheck.workers.process import kill
from dgxcheck.workers.stream import Killer, Worker, next_event

MODULE = "dgxcheck.workers.files_child"
MOST_TROUBLES = 8


class FilesStage:
    """Answers to ``text``, ``data`` and ``opens`` of driver-backed files. The worker starts with the first question."""

    def __init__(self, root: str, deadline: float = 60.0, killer: Killer = kill) -> None:
        self._root = "" if root == "/" else root
        self._killer = killer
        self._spent = 0.0
        self.deadline = deadline
        self._worker: Worker | None = None
        self._answers: dict[str, str] = {}
        self._asked: set[str] = set()
        self._hung: dict[str, str] = {}
        """Device directories that hung or killed a worker, and what to say of them."""

    def ask(self, question: str) -> Json:
        """The JSON value of ``text PATH``, ``data PATH`` (hexadecimal) or ``opens PATH``; a gap as an object."""
        if question not in self._answers:
            questions = [each for each in together(question) if each not in self._asked]
            self._asked.update(questions)
            self._request(questions or [question])
        if question not in self._answers:
            self._answers[question] = self._unanswered(question)
        value: Json = json.loads(self._answers[question])
        return value

    def stop(self) -> None:
        """End the worker; nothing more is wanted."""
        if self._worker is not None:
            self._worker.ended = self._worker.ended or "done"
            self._worker.stop()
            self._worker = None

    def _request(self, questions: list[str]) -> None:
        started = time.monotonic()
        stuck = left_behind.stuck(MODULE)
        while stuck is None and len(self._hung) < MOST_TROUBLES and self._left(started) > 0:
            line = json.dumps({"root": self._root, "ask": questions, "avoid": list(self._hung)})
            if self._worker is None:
                self._worker = Worker(MODULE, line, self._killer)
            else:
                self._worker.ended = None
                self._worker.heard = time.monotonic()
                self._worker.tell(line)
            if self._answered(self._worker, started + self._left(started)):
                break
        if stuck is not None:
            for question in questions:
                self._hung.setdefault(device_of(question), stuck)
        self._spent += time.monotonic() - started

    def _answered(self, worker: Worker, ends: float) -> bool:
        limit = silence_limit(self.deadline)
        event = next_event([worker], lambda _: limit, ends)
        self._answers.update(worker.answers)
        if worker.ended == "done":
            return True
        trouble = f"died: {worker.ended}" if worker.ended else f"no answer for {limit:.3g} s"
        if event is None:
            trouble = f"not answered within the deadline of {self.deadline:g} s"
        if worker.pending is not None:
            self._answers[worker.pending] = _gap(trouble)
            self._hung[device_of(worker.pending)] = f"given up after {worker.pending}: {trouble}"
        worker.stop()
        self._worker = None
        return event is None or worker.pending is None

    def _left(self, started: float) -> float:
        return self.deadline - self._spent - (time.monotonic() - started)

    def _unanswered(self, question: str) -> str:
        device = device_of(question)
        if device in self._hung:
            return _gap(self._hung[device])
        if len(self._hung) >= MOST_TROUBLES or self._spent >= self.deadline:
            return _gap("too many driver-backed files hung before this one")
        # a pattern was answered, and this file is not among what it stands for
        return json.dumps({"missing": Gap.ABSENT.value})


def _gap(detail: str) -> str:
    return json.dumps({"missing": Gap.TIMEOUT.value, "detail": detail})
