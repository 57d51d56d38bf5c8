"""Follows the kernel log: lines are gathered for a second, for some errors take several, then become events."""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from functools import partial

from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.engine.growth import duration
from dgxcheck.facts.kernel_log import MARK, KernelLog
from dgxcheck.facts.record import Record, replace
from dgxcheck.kernel_messages.forms import is_relevant
from dgxcheck.limits import LOG_LINE_CHARACTERS
from dgxcheck.source import state_file
from dgxcheck.source.kernel_log.kmsg import line
from dgxcheck.source.kernel_log.rows import parsed
from dgxcheck.survey import log_facts
from dgxcheck.watch.event import Event
from dgxcheck.watch.log_events import Seen, log_events

RECORD_BYTES = 8192
"""PRINTKRB: a shorter read is refused by the kernel."""
MOST_RECORDS = 500
"""Of one turn, so that a flood does not keep the loop from everything else."""
_HEAD = re.compile(r"\d{1,5},(\d{1,20}),")


class Records(Record):
    """What one turn of reading gave."""

    lines: tuple[str, ...] = ()
    """Those that are about GPUs, PCIe, fabrics or trouble of the host, as ``<seconds since boot>;<message>``."""
    lost: int = 0
    """Records that were overwritten before they were read."""
    more: bool = False
    """Is there more to read at once?"""


class Kmsg:
    """Reads records after ``sequence``, the last of this boot that was read (-1: none), one a read.

    https://www.kernel.org/doc/Documentation/ABI/testing/dev-kmsg
    """

    def __init__(self, read: Callable[[int], bytes], sequence: int = -1) -> None:
        """``read`` gives one record; BlockingIOError where there is none, EPIPE where records were overwritten."""
        self._read = read
        self.sequence = sequence
        self.newest = -1
        """Of the last record that was read."""

    def records(self) -> Records:
        """The records that are there now. OSError where the log cannot be read any more."""
        lines: list[str] = []
        lost = 0
        for _ in range(MOST_RECORDS):
            try:
                raw = self._read(RECORD_BYTES)
            except BlockingIOError:
                raw = b""
            except OSError as error:
                if error.errno == errno.EPIPE:  # the sequence number of the next record says how many
                    continue
                raise
            if not raw:
                return Records(lines=tuple(lines), lost=lost)
            text = raw.decode("utf-8", "replace")
            if (head := _HEAD.match(text)) is None:
                continue
            self.newest = number = int(head[1])
            if number <= self.sequence:
                continue
            lost += number - self.sequence - 1 if self.sequence >= 0 else 0
            self.sequence = number
            found = parsed(text.split("\n"))
            lines += [
                line(since_boot or 0.0, message[:LOG_LINE_CHARACTERS])
                for since_boot, _, message in found if is_relevant(message)
            ]  # fmt: skip
        return Records(lines=tuple(lines), lost=lost, more=True)


_DEVICE = os.makedev(1, 11)
"""https://www.kernel.org/doc/Documentation/admin-guide/devices.txt; containers of Kubernetes link its name to /dev/null
or /dev/console (github.com/kubernetes-sigs/kind/issues/662)."""


def open_kmsg(path: str) -> int:
    """A descriptor of the log that never waits; OSError where this user may not read it, or it is something else."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    status = os.fstat(fd)
    if stat.S_ISREG(status.st_mode) or (stat.S_ISCHR(status.st_mode) and status.st_rdev != _DEVICE):
        os.close(fd)
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV), path)
    return fd


GATHER_S = 1.0
OLD_S = 600.0
"""The clock of the log is not corrected, and is some minutes off after months."""
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
            if not (more or self.caught_up) and 0 <= self._kmsg.newest < self._kmsg.sequence:
                os.lseek(self.fd, 0, os.SEEK_SET)  # the place that a damaged state remembers is still to come
                self._kmsg.sequence, self.first_of_boot, more = -1, True, True
        if lost:
            yield lost_records(lost)
        if self._lines and (more or not self.caught_up or time.monotonic() >= self._since + GATHER_S):
            facts = log_facts([_MARK, *self._lines])
            self._lines.clear()
            if isinstance(facts, KernelLog):
                events = log_events(facts, self._seen, past=self.caught_up or not self.first_of_boot)
                yield from events if self.caught_up else map(_with_age, events)
        if not self._lines:
            self.sequence = self._kmsg.sequence
        self.caught_up = self.caught_up or not more

    def close(self) -> None:
        os.close(self.fd)


def _with_age(event: Event) -> Event:
    """Reported now, though it may have been logged while nothing watched."""
    age = state_file.now()[0] - (event.seconds or 0.0)
    return event if age < OLD_S else replace(event, text=f"{event.text}; logged {duration(age)} ago")


def lost_records(number: int) -> Event:
    """The kernel's buffer overran us."""
    text = f"{number} record{'' if number == 1 else 's'} of the kernel log overwritten before being read"
    return Event(kind="lost", status=Status.WARN, code="kernel log", text=text, count=number)
