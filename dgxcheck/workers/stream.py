"""Listen to workers: one stream protocol for all of them, one reader with deadlines.

A worker writes ``key`` before a question, ``key TAB value`` after it, and ``done`` at the end.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence

from dgxcheck.workers import left_behind
from dgxcheck.workers.process import exit_text, kill, start

Killer = Callable[[int], None]


class Worker:
    """One child process and what it has said so far."""

    def __init__(self, module: str, plan: str, killer: Killer = kill) -> None:
        self.pid, self._plan_fd, self.fd = start(module)
        self._module = module
        self._killer = killer
        self._rest = b""
        self.answers: dict[str, str] = {}
        """Key to JSON text, all that was answered."""
        self.pending: str | None = None
        """The question that was asked last and is not answered."""
        self.heard = time.monotonic()
        self.ended: str | None = None
        """None while it speaks; then ``done``, or how it died (``SIGSEGV``, ``exit 1``)."""
        self.tell(plan)

    def tell(self, line: str) -> None:
        """Hand the worker a line; one that is gone shows in its stream."""
        left = f"{line}\n".encode()
        try:
            while left:
                left = left[os.write(self._plan_fd, left) :]
        except OSError:
            return

    def listen(self) -> None:
        """Take in what has arrived, without waiting."""
        try:
            while chunk := os.read(self.fd, 1 << 16):
                self._take(chunk)
            self._gone()
        except BlockingIOError:
            return

    def stop(self) -> None:
        """Kill what still runs and never wait for it; what cannot be killed is noted for the next run."""
        if self.fd < 0:
            return
        os.close(self.fd)
        os.close(self._plan_fd)
        self.fd = -1
        patience = 0.05 if self.ended == "done" else 0.0
        if not self._reaped(patience):
            self._killer(self.pid)
            if not self._reaped(0.2):
                left_behind.note(self.pid, self._module)

    def _take(self, chunk: bytes) -> None:
        self.heard = time.monotonic()
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        for line in lines:
            key, tab, value = line.decode("utf-8", "replace").partition("\t")
            if tab:
                self.answers[key] = value
                self.pending = None
            elif key == "done":
                self.ended = "done"
                self.pending = None
            else:
                self.pending = key

    def _gone(self) -> None:
        """The stream has ended; the exit status says how, where the child can be waited for already."""
        if self.ended is None:
            for _ in range(20):
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.ended = exit_text(status)
                    return
                time.sleep(0.005)
            self.ended = "closed its output"

    def _reaped(self, patience: float) -> bool:
        until = time.monotonic() + patience
        while True:
            try:
                if os.waitpid(self.pid, os.WNOHANG)[0]:
                    return True
            except ChildProcessError:
                return True
            if time.monotonic() >= until:
                return False
            time.sleep(0.002)


def next_event(workers: Sequence[Worker], silence: Callable[[Worker], float], deadline: float) -> Worker | None:
    """The first worker that ended or has been silent for longer than it may; None at the deadline (monotonic).

    A worker that is returned with ``ended`` None hangs in its ``pending`` question.
    """
    poll = select.poll()
    for worker in workers:
        poll.register(worker.fd, select.POLLIN)
        worker.listen()
    while True:
        for worker in workers:
            if worker.ended is not None:
                return worker
        now = time.monotonic()
        limits = [worker.heard + silence(worker) for worker in workers]
        for worker, limit in zip(workers, limits, strict=True):
            if now >= limit:
                return worker
        if now >= deadline:
            return None
        poll.poll(max(1.0, (min(deadline, *limits) - now) * 1000))
        for worker in workers:
            worker.listen()
