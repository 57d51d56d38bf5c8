"""What to watch, and how often."""

from __future__ import annotations

from dgxcheck.facts.record import Record


class Plan(Record):
    """One run of the watch."""

    root: str = "/"
    """Where the files of the machine are."""
    state: str = "watch.json"
    """Path of the state file."""
    judge_s: float = 300.0
    """Between two judgements; 0: none."""
    counters_s: float = 30.0
    """Between two readings of the counters; 0: none."""
    profile: str = "auto"
    config: str | None = None
    deadline: float = 60.0
    """Most seconds for all that a judgement asks a driver."""
