"""Listen to workers: one stream protocol for all of them, one reader with deadlines.

A worker writes ``key`` before a question, ``key TAB value`` after it, and ``done`` at the end.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Sequence

from dgxcheck.workers import stuck_workers
from dgxcheck.workers.process import exit_text, kill, killed_from_outside, start

Killer = Callable[[int], None]
_LITTLE_S = 0.05
"""What any process waits for a CPU in some seconds of silence."""
_CHUNKS = 64
_LONGEST, _MOST_ANSWERS = 64 << 20, 1_000_000
"""Bytes of one line, and answers: a library that writes to descriptors at random must not fill the memory."""
LEAVING = 30.0
"""Seconds that a worker may take to leave: the driver powers GPUs down one by one as their last user goes."""


class Worker:
    """One child process and what it has said so far."""

    def __init__(self, module: str, plan: str | None = None, killer: Killer = kill) -> None:
        self.module = module
        self._killer = killer
        self._rest = bytearray()
        self._untold = b""
        self.answers: dict[str, str] = {}
        """Key to JSON text, all that was answered."""
        self.pending: str | None = None
        """The question that was asked last and is not answered."""
        self.spoke = False
        self.heard = time.monotonic()
        self.withheld = 0.0
        """Seconds of its silence in which it was ready to run and no CPU was free."""
        self._waited = 0.0
        self.ended: str | None = None
        """None while it speaks; then ``done``, or what became of it (``died: SIGSEGV``)."""
        self.starved = False
        """It never ran, or something other than the driver ended it: lack of processes, files or memory."""
        self.hung = False
        """It was stopped while something was still wanted of it."""
        try:
            self.pid, self._plan_fd, self.fd = start(module)
        except OSError as error:
            self.pid = self._plan_fd = self.fd = -1
            self.ended = f"no worker could be started: {error.strerror}"
            self.starved = True
        if plan is not None:
            self.tell(plan)

    def tell(self, line: str) -> None:
        """Hand the worker a line; what its pipe does not take yet follows while it is listened to."""
        self.ended = None if self.ended == "done" else self.ended
        self.heard, self.withheld = time.monotonic(), 0.0
        self._untold += f"{line}\n".encode()
        self._write()

    def watch(self, poll: select.poll) -> None:
        """Wake up for what it says, and for room in its pipe where that is needed."""
        poll.register(self.fd, select.POLLIN)
        if self._untold:
            poll.register(self._plan_fd, select.POLLOUT)

    def listen(self) -> None:
        """Take in what has arrived, without waiting; of one that never stops talking only so much at a time."""
        self._write()
        for _ in range(_CHUNKS):
            try:
                chunk = os.read(self.fd, 1 << 16)
            except BlockingIOError:
                return
            if not chunk:
                self._gone()
                return
            self._take(chunk)
            if len(self._rest) > _LONGEST or len(self.answers) > _MOST_ANSWERS:
                self.ended = "died: it said more than any worker does"
                return

    def excused(self) -> bool:
        """Is its silence that of a machine without a free CPU? What it waited since this was asked last is withheld."""
        waited, before = waited_for_cpu(self.pid), self._waited
        self._waited = max(waited, before)
        self.withheld = min(self.withheld + self._waited - before, time.monotonic() - self.heard)
        return self._waited - before > _LITTLE_S

    def stop(self, hung: bool = False) -> None:
        """Kill what still runs; nothing is waited for, ``reap_or_list`` comes later."""
        if self.fd < 0:
            return
        os.close(self.fd)
        os.close(self._plan_fd)
        self.fd = self._plan_fd = -1
        self.hung = hung
        if self.ended != "done" and not self.reaped():
            self._killer(self.pid)

    def reaped(self) -> bool:
        """Is there no such child any more?"""
        if self.pid < 0:
            return True
        return self._status() is not None or self.pid < 0

    def _status(self) -> int | None:
        """How it ended; None while it runs, and where the caller ignores SIGCHLD: then the kernel has reaped it.

        What its library has started and left in its group goes with it, before the number of the group is free.
        """
        try:
            if os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            self._killer(self.pid)
            _, status = os.waitpid(self.pid, 0)
        except ChildProcessError:
            self.pid = -1
            return None
        self.pid = -1
        return status

    def _write(self) -> None:
        """As much of the lines as the pipe takes; a worker that is gone shows in its stream."""
        try:
            while self._untold and self._plan_fd >= 0:
                self._untold = self._untold[os.write(self._plan_fd, self._untold) :]
        except BlockingIOError:
            return
        except OSError:
            self._untold = b""

    def _take(self, chunk: bytes) -> None:
        self.heard, self.withheld = time.monotonic(), 0.0
        self.spoke = True
        self._rest += chunk
        if b"\n" not in chunk:
            return
        *lines, self._rest = self._rest.split(b"\n")
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
        if self.ended is not None:
            return
        self.ended = "died: it closed its output"
        for _ in range(20):
            if (status := self._status()) is not None:
                self.ended = f"died: {exit_text(status)}"
                self.starved = killed_from_outside(status)
                return
            if self.pid < 0:
                self.ended = "died"
                return
            time.sleep(0.005)


def waited_for_cpu(pid: int) -> float:
    """Seconds that a process was ready to run and did not, since it began; 0 where the kernel does not tell.

    The second number of ``/proc/PID/schedstat``, in ns (Documentation/scheduler/sched-stats.rst).
    """
    try:
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def reap_or_list(workers: Sequence[Worker]) -> None:
    """Reap stopped workers, all in one short while; what is still there is noted for the next run."""
    left = [worker for worker in workers if not worker.reaped()]
    until = time.monotonic() + (0.2 if any(worker.hung for worker in left) else 0.05)
    while left and time.monotonic() < until:
        time.sleep(0.002)
        left = [worker for worker in left if not worker.reaped()]
    for worker in left:
        stuck_workers.note(worker.pid, worker.module, 0.0 if worker.hung else LEAVING)


def next_event(workers: Sequence[Worker], silence: Callable[[Worker], float], deadline: float) -> Worker | None:
    """The first worker that ended or has been silent for longer than it may; None at the deadline (monotonic).

    A worker that is returned with ``ended`` None hangs in its ``pending`` question.
    """
    while True:
        for worker in workers:
            if worker.ended is None:
                worker.listen()
        if (ended := next((worker for worker in workers if worker.ended is not None), None)) is not None:
            return ended
        now = time.monotonic()
        for worker in workers:
            if now >= worker.heard + worker.withheld + silence(worker) and not worker.excused():
                return worker
        limits = [worker.heard + worker.withheld + silence(worker) for worker in workers]
        if now >= deadline:
            return None
        poll = select.poll()
        for worker in workers:
            worker.watch(poll)
        poll.poll(max(1.0, (min(deadline, *limits) - now) * 1000))
