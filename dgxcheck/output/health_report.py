"""What every format of ``dgxcheck health`` is made from."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.finding import Finding, Status
from dgxcheck.frozen import Record
from dgxcheck.reading import Missing
from dgxcheck.settings import Settings
from dgxcheck.source.protocol import Origin

DEFAULTS = Settings()


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
    fail_on: str = "warn"
    """The mildest verdict that the exit code tells."""
    settings: Settings = DEFAULTS
    """What the findings were judged by."""
