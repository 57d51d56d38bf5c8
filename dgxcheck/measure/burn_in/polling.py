"""Counters and the kernel log, looked at again and again beside a load: in a thread, for a driver may take its time."""

from __future__ import annotations

import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from threading import Event, Thread

from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.survey import Snapshot

LOG_EVERY_S, COUNTERS_EVERY_S = 1.0, 10.0
LookAtLog = Callable[[], "KernelLog | Missing"]
LookAtCounters = Callable[[], "tuple[float, Snapshot] | Missing"]


class Round(Record):
    """One look."""

    log: KernelLog | Missing
    counters: Snapshot | Missing | None
    """None where only the log was looked at."""
    seconds: float = 0.0
    """From the first reading of the counters to this one."""


class Rounds:
    """Starts with the first ``start``; what was seen waits in a queue."""

    def __init__(self, log: LookAtLog, counters: LookAtCounters) -> None:
        self._log, self._counters = log, counters
        self._found: SimpleQueue[Round] = SimpleQueue()
        self._enough = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def since_last(self) -> list[Round]:
        """The looks since it was last asked."""
        rounds = []
        while True:
            try:
                rounds.append(self._found.get_nowait())
            except Empty:
                return rounds

    def finish(self, seconds: float) -> list[Round]:
        """One last look at everything, for which at most so many seconds are waited."""
        self._enough.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return self.since_last()

    def _run(self) -> None:
        due = time.monotonic() + COUNTERS_EVERY_S
        while not self._enough.wait(LOG_EVERY_S):
            whole = time.monotonic() >= due
            self._found.put(self._round(whole))
            due = time.monotonic() + COUNTERS_EVERY_S if whole else due
        self._found.put(self._round(whole=True))

    def _round(self, whole: bool) -> Round:
        try:
            log = self._log()
            if not whole:
                return Round(log=log, counters=None)
            read = self._counters()
            if isinstance(read, Missing):
                return Round(log=log, counters=read)
            return Round(log=log, counters=read[1], seconds=read[0])
        except Exception as error:  # noqa: BLE001 -- the load goes on, and its watch with the next round
            gap = Missing(Gap.GARBLED, "counters", f"{type(error).__name__}: {error}")
            return Round(log=gap, counters=gap)
