"""How far long work has come, for whoever wants to show it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext

from dgxcheck.facts.missing import Json

StepProgress = Callable[[str, int], None]
"""Called with the key of the step that is measured now, and how many steps are done."""
BurnInProgress = Callable[[float, str, str], None]
"""Called with the seconds under load, what is done now, and the worst event so far (empty: none)."""


class Progress:
    """Silent; override what is to be shown."""

    def measuring(self, steps: int) -> AbstractContextManager[StepProgress]:
        """Around the measurements, which have so many steps."""
        return nullcontext(lambda key, done: None)

    def burning_in(self, seconds: float) -> AbstractContextManager[BurnInProgress]:
        """Around a burn-in of so many seconds."""
        return nullcontext(lambda elapsed, step, worst: None)

    def burn_in_event(self, members: Mapping[str, Json]) -> None:
        """A sample or an event of a burn-in, as one JSON object; times are seconds under load."""

    def waiting(self, seconds: float) -> None:
        """The counters of the live machine are read again after so many seconds."""


SILENT = Progress()
