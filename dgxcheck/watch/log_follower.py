"""Follows the kernel log: lines are gathered for a second, for some errors take several, then become events."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.source.kernel_log.kmsg import MARK, line
from dgxcheck.watch.event import Event
from dgxcheck.watch.kmsg import MOST_RECORDS, Kmsg
from dgxcheck.watch.log_events import Seen, log_events, log_facts

GATHER_S = 1.0
_MARK = line(0.0, MARK)


class LogFollower:
    """One kernel log, from ``sequence`` on."""

    def __init__(self, fd: int, sequence: int, seen: Seen) -> None:
        """``fd`` gives one record a read; ``seen`` is how often an Xid of a GPU was counted before."""
        self.fd = fd
        self._kmsg = Kmsg(partial(os.read, fd), sequence)
        self._seen = seen
        self._lines: list[str] = []
        self._since = 0.0
        self.caught_up = False
        """Was everything read that was there at the start?"""
        self.first_of_boot = sequence < 0
        self.sequence = sequence
        """Of the last record whose events were given."""

    @property
    def due(self) -> float | None:
        """When the gathered lines become events (monotonic); None if there are none."""
        return self._since + GATHER_S if self._lines else None

    def events(self) -> Iterator[Event]:
        """Those that are ready; never waits. OSError where the log cannot be read any more."""
        lost, more = 0, True
        while more and len(self._lines) < MOST_RECORDS:
            found = self._kmsg.records()
            lost, more = lost + found.lost, found.more
            if found.lines and not self._lines:
                self._since = time.monotonic()
            self._lines += found.lines
        if lost:
            yield lost_records(lost)
        if self._lines and (more or not self.caught_up or time.monotonic() >= self._since + GATHER_S):
            facts = log_facts([_MARK, *self._lines])
            self._lines.clear()
            if isinstance(facts, KernelLog):
                yield from log_events(facts, self._seen, past=self.caught_up or not self.first_of_boot)
        if not self._lines:
            self.sequence = self._kmsg.sequence
        self.caught_up = self.caught_up or not more

    def close(self) -> None:
        os.close(self.fd)


def lost_records(number: int) -> Event:
    """The kernel's buffer overran us."""
    text = f"{number} record{'' if number == 1 else 's'} of the kernel log overwritten before being read"
    return Event(kind="lost", status=Status.WARN, code="kernel log", text=text, count=number)
