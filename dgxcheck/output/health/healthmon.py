"""Findings as nvidia-healthmon closed its output: one line each, then the totals.

https://docs.nvidia.com/deploy/healthmon-user-guide/index.html
"""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.run import counts
from dgxcheck.output.health.finding_lines import subject_name
from dgxcheck.output.health.report import Report
from dgxcheck.output.plain_text import columns, lines, visible

_ORDER = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.SKIP)


def render(report: Report) -> str:
    """A line per finding, the worst first; then healthmon's totals."""
    findings = report.assessment.findings
    rows = [_cells(each) for each in sorted(findings, key=lambda each: _ORDER.index(each.status))]
    return lines([*(columns(rows) if rows else []), "", *closing(findings)])


def closing(findings: Sequence[Finding]) -> list[str]:
    """The last two lines of nvidia-healthmon, for scripts that read them; unknown and skip did not run."""
    seen = counts(findings)
    silent = seen[Status.UNKNOWN] + seen[Status.SKIP]
    return [
        f"System Results: {seen[Status.PASS]} success, {seen[Status.FAIL]} errors, {seen[Status.WARN]} warnings,"
        f" {silent} did not run",
        *(["One or more tests didn't run."] if silent else []),
    ]


def _cells(finding: Finding) -> tuple[str, ...]:
    judgement = finding.judgement
    reason = f"{judgement.reason}: " if judgement.reason else ""
    place = visible(subject_name(finding.subject))
    return (finding.status.value.upper().ljust(7), finding.id, place, visible(f"{reason}{judgement.message}"))
