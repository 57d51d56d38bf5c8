"""Long work shows how far it is, on a terminal; into a pipe it says nothing."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from dgxcheck.output.plain_text import visible
from dgxcheck.workers.cuda.supervisor import Progress


@contextmanager
def progress(total: int) -> Iterator[Progress]:
    """A bar on stderr while steps are measured; called with the key of the step and how many are done."""
    if not sys.stderr.isatty():
        yield lambda key, done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (BarColumn(bar_width=20), MofNCompleteColumn(), TimeRemainingColumn(), TextColumn("{task.description}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("starting CUDA", total=total)
        yield lambda key, done: bar.update(task, description=key.removeprefix("measure "), completed=done)


Told = Callable[[float, str, str], None]
"""Told the seconds that have passed, what is done now, and the worst that was found."""


@contextmanager
def countdown(seconds: float) -> Iterator[Told]:
    """The time that a burn-in still takes, on a terminal."""
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

        def told(elapsed: float, step: str, worst: str) -> None:
            text = f"{step}; {worst or 'no problem found so far'}"
            bar.update(task, completed=elapsed, left=clock(seconds - elapsed), description=escape(visible(text)))

        yield told


def clock(seconds: float) -> str:
    """``1:29:05``, ``4:07``"""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
