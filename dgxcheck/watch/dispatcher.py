"""Where events arrive: counted, reported to whoever listens, and remembered in the state file."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterable, Sequence
from math import inf
from typing import Protocol

from dgxcheck.checks.engine.finding import Status, counted
from dgxcheck.facts.missing import BadInput
from dgxcheck.source import state_file
from dgxcheck.watch.event import Event, ReportedEvent
from dgxcheck.watch.fold import RANK
from dgxcheck.watch.memory import Memory, load, save

SAVE_S, SAVE_AGAIN_S = 10.0, 60.0
"""Between two writes of the state file, and after one that failed."""


class Sink(Protocol):
    """Where events go."""

    def tell(self, reported: ReportedEvent) -> None:
        """One event that is news."""

    def show(self, memory: Memory) -> None:
        """All that is known, once per turn of the loop; what tells events alone leaves this as it is."""
        return

    @property
    def due(self) -> float:
        """When the loop has to come around for it (monotonic)."""
        return inf


class Dispatcher:
    """Counts events and tells them."""

    def __init__(self, path: str, sinks: Sequence[Sink]) -> None:
        """``path`` is the state file."""
        self._path, self._sinks = path, sinks
        self._save_at = 0.0
        self._changed = False
        self._locked = -1
        """The folder of the state file."""
        self.memory = Memory()

    def begin(self, boot_id: str) -> None:
        """Read the state file; a file that is something else is said, and replaced."""
        try:
            self.memory = load(self._path) or self.memory
        except BadInput as error:
            self.note("state", f"{error}; starting without it")
        if self.memory.damaged:
            entries = counted(self.memory.damaged, "damaged entry", "damaged entries")
            self.note("state", f"{self._path}: {entries} dropped")
        self._lock_folder()
        self.memory.of_boot(boot_id)

    def _lock_folder(self) -> None:
        """As long as this runs: of two that write the same state, each loses what the other has counted."""
        folder = os.path.dirname(self._path) or "."
        try:
            state_file.make_folder(self._path)
            self._locked = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(self._locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.note("state", f"{folder}: another watch keeps its state there; give each its own folder", Status.WARN)
        except OSError:
            return  # saving will tell, or the file system has no locks

    def tell(self, events: Iterable[Event]) -> Status:
        """Count events and tell what is news; the worst status of that."""
        at_s, date = state_file.now()
        worst = Status.PASS
        for reported in self.memory.ledger.take(events, at_s, date):
            self._tell(reported)
            worst = max(worst, reported.event.status, key=RANK.index)
            self._changed = True
        return worst

    def note(self, about: str, text: str, status: Status = Status.PASS) -> None:
        """Say something about the watching itself."""
        self.tell([Event(kind="note", status=status, code=about, text=text)])

    def turn(self) -> None:
        """Sum up what repeated, and show what is known."""
        for reported in self.memory.ledger.repeated(*state_file.now()):
            self._tell(reported)
            self._changed = True
        for sink in self._sinks:
            sink.show(self.memory)

    def changed(self) -> None:
        """Something other than an event is to be remembered."""
        self._changed = True

    @property
    def due(self) -> float:
        """When the state is to be written, if it has changed, or a sink has to do with it (monotonic)."""
        save_at = self._save_at if self._changed else inf
        return min((save_at, *(sink.due for sink in self._sinks)))

    def save(self, now: bool = False) -> None:
        """Write the state if that is due, or ``now``; a full disk stops nothing."""
        if not self._changed or (time.monotonic() < self._save_at and not now):
            return
        try:
            state_file.make_folder(self._path)
            save(self._path, self.memory)
            self._changed = False
            self._save_at = time.monotonic() + SAVE_S
        except OSError as error:
            self._save_at = time.monotonic() + SAVE_AGAIN_S
            self.note("state", f"{self._path}: cannot be written: {error.strerror}", Status.WARN)

    def _tell(self, reported: ReportedEvent) -> None:
        for sink in self._sinks:
            sink.tell(reported)
