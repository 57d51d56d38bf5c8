"""What every format of ``dgxcheck health`` is made from."""

from __future__ import annotations

from dgxcheck.assessment.result import Assessment
from dgxcheck.facts.record import Record


class Report(Record):
    """An assessment, and how it is to be shown."""

    assessment: Assessment
    exit_code: int
    verbose: bool = False
    """Are findings that passed or skipped wanted too, where a format leaves them out?"""
    fail_on: str = "warn"
    """The mildest verdict that the exit code tells."""
    width: int | None = None
    """Columns of the terminal; None: lines are not folded."""
