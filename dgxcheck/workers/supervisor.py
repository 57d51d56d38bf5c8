"""Start workers, listen to all of them at once, end them. Each has a module, and limits to its silence."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable

from dgxcheck.facts.missing import NO_WORKER, Gap, Json
from dgxcheck.workers.process import kill
from dgxcheck.workers.stream import Killer, Worker, next_event, reap_or_list, waited_for_cpu

LEAST_START_S = 90.0
"""Opening CUDA on a cold box of eight GPUs, and waiting for jobs to end, is no hang, however short the limit."""
Silence = Callable[[Worker], float]
"""Seconds without a word after which a worker counts as hung, by the question that it is at."""


class Supervisor:
    """The workers of one run, of one or more kinds. No method waits for a worker that does not end."""

    def __init__(self, killer: Killer = kill) -> None:
        """``killer`` ends the process group of a pid."""
        self._killer = killer
        self._running: dict[Worker, Silence] = {}
        self._ended: list[Worker] = []
        self._since = time.monotonic()
        self._waited = waited_for_cpu(os.getpid())

    def start(self, module: str, silence: Silence, plan: str | None = None) -> Worker:
        """A new worker, which runs the ``main`` of ``module`` and is given ``plan`` as its first line of stdin."""
        worker = Worker(module, plan, self._killer)
        self._running[worker] = silence
        return worker

    def watch(self, poll: select.poll) -> None:
        """Wake up for what any of them says."""
        for worker in self._running:
            if worker.fd >= 0:
                worker.watch(poll)

    def next_event(self, deadline: float) -> Worker | None:
        """The first worker that ended or hangs; None at the deadline (``time.monotonic``)."""
        return next_event([*self._running], lambda worker: self._running[worker](worker), deadline)

    def crowded_out(self) -> bool:
        """Was no CPU free for most of the time so far: for a worker, or for this process, which takes its answers?"""
        longest = max((waited_for_cpu(worker.pid) for worker in self._running), default=0.0)
        waited = longest + waited_for_cpu(os.getpid()) - self._waited
        return waited > (time.monotonic() - self._since) / 2

    def end(self, worker: Worker, hung: bool | None = None) -> None:
        """Kill a worker that still runs; ``hung`` where something was still wanted of it (by default: it runs)."""
        del self._running[worker]
        worker.stop(worker.ended is None if hung is None else hung)
        self._ended.append(worker)

    def reap(self) -> set[str]:
        """Reap ended workers without waiting; of which kinds some that hung are still there. Only what runs for long
        needs it."""
        self._ended = [worker for worker in self._ended if not worker.reaped()]
        return {worker.module for worker in self._ended if worker.hung}

    def stop(self) -> None:
        """End all workers; nothing more is wanted of them. Those that cannot be reaped are listed for the next run."""
        for worker in [*self._running]:
            self.end(worker, hung=False)
        reap_or_list(self._ended)
        self._ended.clear()


def timeout(detail: str, starved: bool = False) -> dict[str, Json]:
    """The gap of a question that was not answered in time, as workers write gaps.

    ``starved``: for lack of a worker, which is no fault of the driver.
    """
    gap: dict[str, Json] = {"missing": Gap.TIMEOUT.value, "detail": detail}
    return gap | {"code": NO_WORKER} if starved else gap


def late(what: str, deadline: float, crowded: bool) -> str:
    """Why a question was not ``what`` (asked, answered); ``crowded`` where the host had no CPU for who asks."""
    deadline_s = f"the deadline of {deadline:g} s"
    return f"the host had no CPU free for most of {deadline_s}" if crowded else f"not {what} within {deadline_s}"


def init_limit(deadline: float) -> float:
    """Seconds that opening the driver may take: a cold box of eight GPUs needs 10 to 25 s and is not hung."""
    return max(deadline - 3, deadline / 2)


def silence_limit(deadline: float) -> float:
    """Seconds after which any other question counts as hung."""
    return min(5.0, deadline / 4)
