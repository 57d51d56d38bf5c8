"""What every format of ``dgxcheck diff`` is made from."""

from __future__ import annotations

from dgxcheck.assessment.compare import Comparison
from dgxcheck.facts.record import Record


class Report(Record):
    """A comparison, and how the command ends."""

    comparison: Comparison
    exit_code: int
