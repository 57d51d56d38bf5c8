"""Events of a burn-in, in order, and their listener."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from dgxcheck.facts.missing import Json
from dgxcheck.measure.burn_in.polling import Poll

MOST = 200
Event = dict[str, Json]
"""``event``, ``gpu`` (bus id or null) and ``text``; ``status`` where it is bad."""


class Listener(Protocol):
    """Receives the events of a burn-in; times are seconds since the load began, negative before."""

    def sample(self, at: float, sample: Mapping[str, Any]) -> None:
        """A sample of all GPUs."""

    def event(self, at: float, event: Event) -> None:
        """An event."""

    def progress(self, elapsed: float, step: str) -> None:
        """The time under load, and the current turn."""

    def new_findings(self, poll: Poll) -> Sequence[Event]:
        """Findings on counters and kernel log that are new since the start."""


class Events:
    """Passes events on to the listener and records the first ``MOST``, of PCIe errors half as many."""

    def __init__(self, listener: Listener) -> None:
        self.listener = listener
        self.load_start: float | None = None
        """Since when all GPUs are under load (monotonic)."""
        self.recorded: list[Event] = []
        self._left_out = 0

    def since(self, now: float | None = None) -> float:
        """Seconds under load; 0 before it began."""
        return (time.monotonic() if now is None else now) - self.load_start if self.load_start is not None else 0.0

    def note(self, what: str, bdf: str, text: str, status: str = "") -> None:
        """Record an event of a GPU, or of the whole run if ``bdf`` is empty."""
        event: Event = {"event": what, "gpu": bdf or None, "text": text}
        self.record({**event, "status": status} if status else event)

    def record(self, event: Event) -> None:
        at = round(self.since(), 1)
        if len(self.recorded) < (MOST // 2 if event["event"] == "aer" else MOST):
            self.recorded.append({"at_s": at, **event})
        else:
            self._left_out += 1
        self.listener.event(at, event)

    def all(self) -> list[Json]:
        """Those that are recorded, and how many are not."""
        text = f"{self._left_out} more events, not recorded"
        more: list[Json] = [{"at_s": round(self.since(), 1), "event": "note", "gpu": None, "text": text}]
        return [*self.recorded, *(more if self._left_out else [])]
