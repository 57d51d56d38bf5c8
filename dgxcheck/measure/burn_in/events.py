"""What happens during a burn-in, in the order in which it happens, and who follows it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dgxcheck.facts.missing import Json
from dgxcheck.measure.burn_in.polling import Round

MOST = 200
Event = dict[str, Json]
"""``event``, ``gpu`` (bus id or null) and ``text``; ``status`` where it is bad."""


class Listener(Protocol):
    """Who follows a burn-in; times are seconds since the load began, negative before."""

    def sample(self, at: float, sample: Mapping[str, Any]) -> None:
        """NVML was looked at."""

    def event(self, at: float, event: Event) -> None:
        """Something happened."""

    def moment(self, elapsed: float, step: str) -> None:
        """Some time has passed."""

    def judged(self, read: Round) -> Sequence[Event]:
        """What is wrong according to counters and log that was not wrong before."""


class Events:
    """Keeps the first of them, and tells all to the listener."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.begun: float | None = None
        """Since when all GPUs are under load (monotonic)."""
        self.kept: list[Event] = []

    def since(self, now: float | None = None) -> float:
        """Seconds under load; 0 before it began."""
        return (time.monotonic() if now is None else now) - self.begun if self.begun is not None else 0.0

    def note(self, what: str, bdf: str, text: str, status: str = "") -> None:
        """Something that happened to a GPU, or with an empty ``bdf`` to the run."""
        event: Event = {"event": what, "gpu": bdf or None, "text": text}
        self.keep({**event, "status": status} if status else event)

    def keep(self, event: Event) -> None:
        at = round(self.since(), 1)
        if len(self.kept) < MOST:
            self.kept.append({"at_s": at, **event})
        self.listener.event(at, event)
