"""Long work shows how far it is, on a terminal; into a pipe it says nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dgxcheck.assessment.progress import BurnInProgress, Progress, StepProgress
from dgxcheck.facts.missing import Json
from dgxcheck.output.plain_text import visible

if TYPE_CHECKING:
    from dgxcheck.source.debug_log import DebugLog


class TerminalProgress(Progress):
    """Bars on stderr, and the events of a burn-in as lines of a log."""

    def __init__(self, events: DebugLog | None = None) -> None:
        self._events = events

    @contextmanager
    def measuring(self, steps: int) -> Iterator[StepProgress]:
        if not sys.stderr.isatty():
            yield lambda key, done: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        text = TextColumn("{task.description}")
        columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn(), text)
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("starting CUDA", total=steps)
            yield lambda key, done: bar.update(task, description=key.removeprefix("measure "), completed=done)

    @contextmanager
    def burning_in(self, seconds: float) -> Iterator[BurnInProgress]:
        if not sys.stderr.isatty():
            yield lambda elapsed, step, worst: None
            return
        from rich.console import Console
        from rich.markup import escape
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        columns = (BarColumn(bar_width=20), TextColumn("{task.fields[left]} left"), TextColumn("{task.description}"))
        with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task("burn-in", total=seconds, left=clock(seconds))

            def show(elapsed: float, step: str, worst: str) -> None:
                text = f"{step}; {worst or 'no problem found so far'}"
                bar.update(task, completed=elapsed, left=clock(seconds - elapsed), description=escape(visible(text)))

            yield show

    def burn_in_event(self, members: Mapping[str, Json]) -> None:
        if self._events is not None:
            self._events.line(members)

    def waiting(self, seconds: float) -> None:
        if sys.stderr.isatty():
            print(f"reading the counters again in {seconds:g} s ...", file=sys.stderr)


def clock(seconds: float) -> str:
    """``1:29:05``, ``4:07``"""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
