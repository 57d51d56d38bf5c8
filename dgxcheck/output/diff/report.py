"""What every format of ``dgxcheck diff`` is made from."""

from __future__ import annotations

from dgxcheck.difference.model import Difference
from dgxcheck.facts.record import Record
from dgxcheck.source.protocol import Origin


class Look(Record):
    """One side, as far as it is shown."""

    origin: Origin
    score: float | None
    against: str
    """The reference machine's name; empty without one."""


class Report(Record):
    """The differences, the worst first."""

    old: Look
    new: Look
    differences: tuple[Difference, ...]
    notes: tuple[str, ...]
    """What could not be compared, and why."""
    verdict: str
    """``worse``, ``better`` or ``same``."""
    exit_code: int
