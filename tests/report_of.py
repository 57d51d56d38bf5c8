"""A report of findings that no machine has, for tests of the formats."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dgxcheck.assessment.machine import topology_of
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.run import EXIT_CODES, verdict
from dgxcheck.diagnosis.model import Diagnosis
from dgxcheck.facts.record import replace
from dgxcheck.output.report import HealthReport
from dgxcheck.settings import Settings
from dgxcheck.source.protocol import Origin
from dgxcheck.survey import Snapshot

EMPTY = Assessment(
    origin=Origin("live"), snapshot=Snapshot(), topology=topology_of(Snapshot()), level="default", settings=Settings(),
    choice=None, findings=(), verdict=verdict(()), diagnosis=Diagnosis(causes=(), unexplained=()), score=None,
    figures=(), host={}, seconds=1.0,
)  # fmt: skip


def report_of(findings: Iterable[Finding], **members: Any) -> HealthReport:
    """These findings, with their verdict; ``members`` are others of the assessment."""
    given = tuple(findings)
    assessment = replace(EMPTY, findings=given, verdict=verdict(given), **members)
    return HealthReport(assessment=assessment, exit_code=EXIT_CODES[assessment.verdict])
