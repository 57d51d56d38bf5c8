"""What every format of ``dgxcheck health`` is made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.diagnosis.causes import Diagnosis
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.profiles.model import Choice
from dgxcheck.readiness.figures import Figure
from dgxcheck.score.expectation import Score
from dgxcheck.settings import Acknowledgement, Settings
from dgxcheck.source.protocol import Origin

DEFAULTS = Settings()
NOTHING = Diagnosis(causes=(), unexplained=())
Level = Literal["quick", "default", "extended"]
"""How much was asked for: state once; growth of counters and the kernel log too; all there is."""


class Report(Record):
    """The findings of one run, and what is told beside them."""

    findings: tuple[Finding, ...]
    verdict: Status
    exit_code: int
    origin: Origin
    host: Mapping[str, str | Missing]
    """``host``, the name, and ``boot_id``."""
    seconds: float
    """How long asking and judging took."""
    verbose: bool
    """Are findings that passed or skipped wanted too, where a format leaves them out?"""
    level: Level = "default"
    choice: Choice | None = None
    """The reference machine."""
    score: Score | None = None
    diagnosis: Diagnosis = NOTHING
    """What is to blame."""
    fail_on: str = "warn"
    """The mildest verdict that the exit code tells."""
    figures: tuple[Figure, ...] = ()
    """What was measured under load."""
    unmatched: tuple[Acknowledgement, ...] = ()
    """Acknowledgements whose device is not here."""
    settings: Settings = DEFAULTS
    """What the findings were judged by."""
