"""The verdict as a reason for which a scheduler drains the node."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, Status, against
from dgxcheck.diagnosis.action import first_remedy
from dgxcheck.output.drain_reason import Item, drain_reason
from dgxcheck.output.health.finding_lines import subject_name
from dgxcheck.output.plain_text import lines
from dgxcheck.output.report import HealthReport


def render(report: HealthReport) -> str:
    """One line."""
    assessment = report.assessment
    return lines([drain_reason(assessment.verdict.value, assessment.level, [*_items(assessment)])])


def _items(assessment: Assessment) -> Iterator[Item]:
    """In the order of the causes; what no cause explains comes last."""
    failed = {each.key: each for each in assessment.findings if each.status is Status.FAIL and not each.acknowledged}
    for cause in assessment.causes:
        step = first_remedy(cause.actions).step
        yield from (_item(failed.pop(key), cause.component.id, step) for key in cause.explains if key in failed)
    yield from (_item(finding, "", "") for finding in failed.values())


def _item(finding: Finding, cause: str, step: str) -> Item:
    judgement = finding.judgement
    return Item(
        check=finding.id, subject=subject_name(finding.subject),
        fault="" if judgement.fault is None else judgement.fault.word,
        figure=against(judgement.measured, judgement.expected, judgement.unit), cause=cause, step=step,
    )  # fmt: skip
