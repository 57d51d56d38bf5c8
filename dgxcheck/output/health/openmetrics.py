"""The same metrics as OpenMetrics."""

from __future__ import annotations

from dgxcheck.output import exposition
from dgxcheck.output.health.prometheus import families
from dgxcheck.output.health.report import Report


def render(report: Report) -> str:
    """All metrics of one run, ended by ``# EOF``."""
    return exposition.openmetrics(families(report))
