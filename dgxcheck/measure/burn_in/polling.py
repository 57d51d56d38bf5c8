"""Poll counters and the kernel log during a burn-in, in a thread, as the driver may be slow to answer."""

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


class Poll(Record):
    """One poll."""

    log: KernelLog | Missing
    counters: Snapshot | Missing | None
    """None if only the log was read."""
    seconds: float = 0.0
    """From the first reading of the counters to this one."""


class Poller:
    """Starts with the first ``start``; what was seen waits in a queue."""

    def __init__(self, log: LookAtLog, counters: LookAtCounters) -> None:
        self._log, self._counters = log, counters
        self._polls: SimpleQueue[Poll] = SimpleQueue()
        self._stop = Event()
        self._thread = Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def since_last(self) -> list[Poll]:
        """The looks since it was last asked."""
        polls = []
        while True:
            try:
                polls.append(self._polls.get_nowait())
            except Empty:
                return polls

    def finish(self, seconds: float) -> list[Poll]:
        """One last look at everything, for which at most so many seconds are waited."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(seconds)
        return self.since_last()

    def _run(self) -> None:
        next_counters = time.monotonic() + COUNTERS_EVERY_S
        while not self._stop.wait(LOG_EVERY_S):
            whole = time.monotonic() >= next_counters
            self._polls.put(self._poll(whole))
            next_counters = time.monotonic() + COUNTERS_EVERY_S if whole else next_counters
        self._polls.put(self._poll(whole=True))

    def _poll(self, whole: bool) -> Poll:
        try:
            log, read = self._log(), self._counters() if whole else None
            seconds, counters = read if isinstance(read, tuple) else (0.0, read)
            return Poll(log=log, counters=counters, seconds=seconds)
        except Exception as error:  # noqa: BLE001 -- the load goes on, and its watch with the next round
            gap = Missing(Gap.GARBLED, "counters", f"{type(error).__name__}: {error}")
            return Poll(log=gap, counters=gap)
