"""Where the events of the watch go: lines, a terminal, the journal, a file of metrics, the site's program."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable
from math import inf

import click

from dgxcheck.cli.results import save, writing_stdout
from dgxcheck.facts.missing import BadInput
from dgxcheck.output import watch
from dgxcheck.output.watch import json_line
from dgxcheck.source.state_file import now
from dgxcheck.watch.dispatcher import Sink
from dgxcheck.watch.event import ReportedEvent
from dgxcheck.watch.hook import Hook
from dgxcheck.watch.memory import Memory
from dgxcheck.watch.systemd import send

JOURNAL = "/run/systemd/journal/socket"
RUNNING_S = 0.5
"""Between two looks at a program that runs."""
_HOME, _CLEAR_BELOW = "\x1b[H\x1b[2J", "\x1b[J"


class LineSink(Sink):
    """A line on stdout for each event."""

    def __init__(self, form: Callable[[ReportedEvent], str]) -> None:
        self._form = form

    def tell(self, reported: ReportedEvent) -> None:
        with writing_stdout():
            sys.stdout.write(f"{self._form(reported)}\n")
            sys.stdout.flush()


class TimedSink(Sink):
    """Shows all that is known, once in a while."""

    every_s: float
    _due = 0.0

    @property
    def due(self) -> float:
        return self._due

    def show(self, memory: Memory) -> None:
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + self.every_s
            self.draw(memory)

    def draw(self, memory: Memory) -> None:
        """Now."""


class TableSink(TimedSink):
    """The state of the machine as a table, drawn every second."""

    every_s = 1.0

    def tell(self, reported: ReportedEvent) -> None:
        self._due = 0.0

    def draw(self, memory: Memory) -> None:
        size = shutil.get_terminal_size()
        sys.stdout.write(f"{_HOME}{watch.table(memory, now()[1], size.columns, size.lines)}{_CLEAR_BELOW}")
        sys.stdout.flush()


class JournalSink(Sink):
    """Entries with fields, in place of lines on a stdout that is the journal."""

    def __init__(self, address: str = JOURNAL) -> None:
        self._address = address

    def tell(self, reported: ReportedEvent) -> None:
        try:
            send(watch.journal_entry(reported), self._address)
        except OSError:  # journald is being restarted: its own pipe takes the line
            LineSink(json_line).tell(reported)


class MetricsSink(TimedSink):
    """A file for the textfile collector of node_exporter."""

    every_s = 30.0

    def __init__(self, file: str) -> None:
        self._file = file
        self._trouble = ""

    def tell(self, reported: ReportedEvent) -> None:
        self._due = min(self._due, time.monotonic() + 1.0)

    def draw(self, memory: Memory) -> None:
        try:
            save(self._file, watch.metrics(memory), 0o644, exactly=True)
            self._trouble = ""
        except BadInput as error:
            if str(error) != self._trouble:
                self._trouble = str(error)
                click.echo(f"dgxcheck: {error}", err=True)


class ProgramSink(Sink):
    """The site's own program, given each event as a line of JSON."""

    def __init__(self, program: str) -> None:
        self.hook = Hook(program)
        self._trouble = ""

    def tell(self, reported: ReportedEvent) -> None:
        self.hook.give(json_line(reported))

    @property
    def due(self) -> float:
        return time.monotonic() + RUNNING_S if self.hook.busy else inf

    def show(self, memory: Memory) -> None:
        self.hook.turn()
        self._say()

    def finish(self, seconds: float = inf) -> None:
        """Wait for the last runs, but no longer than this."""
        self.hook.finish(seconds)
        self._say()

    def _say(self) -> None:
        dropped = f"{self.hook.dropped} events were not given to the program" if self.hook.dropped else ""
        trouble = self.hook.trouble or dropped
        if trouble and trouble != self._trouble:
            click.echo(f"dgxcheck: {trouble}", err=True)
        self._trouble = trouble


def stdout_is_journal() -> bool:
    """Has systemd connected our stdout with the journal? (``$JOURNAL_STREAM``, systemd.exec(5))"""
    device, _, inode = os.environ.get("JOURNAL_STREAM", "").partition(":")
    try:
        status = os.fstat(1)
    except OSError:
        return False
    return (device, inode) == (str(status.st_dev), str(status.st_ino)) and os.path.exists(JOURNAL)
