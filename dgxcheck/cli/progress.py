"""Long work shows how far it is, on a terminal; into a pipe it says nothing."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from dgxcheck.assessment.progress import BurnInProgress, HostNow, Progress, StepProgress
from dgxcheck.facts.missing import Json
from dgxcheck.output.plain_text import fitted, visible

if TYPE_CHECKING:
    from dgxcheck.output.progress import BurningIn, Measuring
    from dgxcheck.source.debug_log import DebugLog


_PER_SECOND = 4
DrawnLines = Callable[[int, int], list[str]]
"""What is shown, for a width and a height."""


class TerminalProgress(Progress):
    """What runs now, on stderr, and the events of a burn-in as lines of a log."""

    def __init__(self, events: DebugLog | None = None) -> None:
        self._events = events
        self._keys: Sequence[str] = ()
        self._measuring: Measuring | None = None
        self._burning: BurningIn | None = None

    def planned(self, keys: Sequence[str]) -> None:
        self._keys = keys

    @contextmanager
    def measuring(self, steps: int) -> Iterator[StepProgress]:
        from dgxcheck.output.progress import Measuring

        shown = self._measuring = Measuring(self._keys)
        begun = time.monotonic()
        with _shown(lambda width, height: shown.lines(time.monotonic() - begun, width, height)):
            yield shown.step
        self._measuring = None

    def figure(self, key: str, fact: Json) -> None:
        if self._measuring is not None:
            self._measuring.figure(key, fact)

    @contextmanager
    def burning_in(self, seconds: float) -> Iterator[BurnInProgress]:
        from dgxcheck.output.progress import BurningIn

        shown = self._burning = BurningIn(seconds)
        with _shown(shown.lines):
            yield shown.moment
        self._burning = None

    def burn_in_event(self, members: Mapping[str, Json]) -> None:
        if self._events is not None:
            self._events.line(members)
        if self._burning is not None:
            self._burning.event(members)

    def host(self, now: HostNow) -> None:
        for shown in (self._measuring, self._burning):
            if shown is not None:
                shown.host = now

    @contextmanager
    def waiting(self, seconds: float) -> Iterator[None]:
        from dgxcheck.output.progress import clock

        until = time.monotonic() + seconds
        text = "reading the counters again in {}; Ctrl-C goes on without it"
        with _shown(lambda width, height: fitted([text.format(clock(until - time.monotonic()))], width)):
            yield

    @contextmanager
    def reading(self, names: Sequence[str]) -> Iterator[Callable[[str], None]]:
        now: list[str] = []

        def lines(width: int, height: int) -> list[str]:
            return fitted([f"reading {len(now)} of {len(names)}: {visible(now[-1])}"] if now else [], width)

        with _shown(lines):
            yield now.append


@contextmanager
def _shown(lines: DrawnLines) -> Iterator[None]:
    """Draw the lines several times a second, and leave nothing behind."""
    if not sys.stderr.isatty():
        yield
        return
    import shutil

    from rich.console import Console
    from rich.live import Live
    from rich.text import Text

    def drawn() -> Text:
        size = shutil.get_terminal_size()
        return Text("\n".join(lines(size.columns, size.lines)))

    console = Console(stderr=True)
    with Live(console=console, get_renderable=drawn, refresh_per_second=_PER_SECOND, transient=True):
        yield
