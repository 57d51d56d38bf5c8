"""Long work shows how far it is, on a terminal; into a pipe it says nothing."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from dgxcheck.workers.cuda import Progress


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
