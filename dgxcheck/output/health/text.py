"""``dgxcheck health`` for people: verdict, devices at a glance, causes with actions, then what did not run."""

from __future__ import annotations

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.engine.wording import counted
from dgxcheck.output import provenance
from dgxcheck.output.health import causes as health_causes
from dgxcheck.output.health import host_use, overview
from dgxcheck.output.health.finding_lines import (
    acknowledged,
    by_subject,
    noted,
    skip_counts,
    skipped,
    unexplained,
    worst_first,
)
from dgxcheck.output.health.healthmon import closing
from dgxcheck.output.health.measurement_tables import tables
from dgxcheck.output.health.report import Report
from dgxcheck.output.health.verdict_line import verdict_line, what_ran
from dgxcheck.output.plain_text import lines, percent, visible, wrapped
from dgxcheck.score.expectation import LEAST_COVERAGE

_HOW = {"named": "as requested", "product": "by product name", "gpus": "by GPU model only"}
_MOST_NAMED = 4
_MOST_FINDINGS = 12


def render(report: Report) -> str:
    """The verdict first; ``verbose``: also every finding by device, and every check that did not run."""
    assessment, width = report.assessment, report.width
    return lines(
        [
            wrapped(verdict_line(assessment), width, 6),
            "",
            *overview.tables(assessment, width),
            *_problems(report),
            *(tables(assessment.figures) if _shows_figures(report) else []),
            *host_use.as_text(assessment, report.verbose),
            *([*by_subject(assessment.findings), *skipped(assessment.findings)] if report.verbose else []),
            *(wrapped(line, width, 2) for line in _summary(report)),
        ]
    )


def _shows_figures(report: Report) -> bool:
    """Figures are shown where they are what was asked for: of a measurement, or of imported results."""
    assessment = report.assessment
    imported = assessment.origin.provenance.startswith("imported")
    return report.verbose or assessment.level == "extended" or imported


def _problems(report: Report) -> list[str]:
    """Causes with the findings that support them, then the findings without a cause, then what the site accepts."""
    assessment, width = report.assessment, report.width
    elsewhere = assessment.origin.kind == "report"
    told = health_causes.as_text(assessment.diagnosis, assessment.findings, report.verbose, width, elsewhere)
    keys = set(assessment.diagnosis.unexplained)
    left = [finding for finding in worst_first(assessment.findings) if finding.key in keys]
    most = len(left) if report.verbose or len(left) <= _MOST_FINDINGS else _MOST_FINDINGS - 1
    for before, finding in zip([None, *left], left[:most], strict=False):
        again = before is not None and finding.status is Status.UNKNOWN and before.remedy == finding.remedy
        told += unexplained(finding, width)[: 1 if again else None]
    told += [f"and {len(left) - most} more; list them with -v"] if left[most:] else []
    for finding in assessment.findings:
        told += acknowledged(finding, width)
    told += noted(assessment.findings, width) if elsewhere and not report.verbose else []
    return [*told, ""] if told else []


def score_line(assessment: Assessment) -> str:
    """The share of the reference machine's capability that is there."""
    choice, score = assessment.choice, assessment.score
    if choice is None or score is None:
        return "Score: none (no reference machine matches; dgxcheck profiles lists them)."
    against = f"{visible(choice.profile.name)} ({_HOW[choice.how]})"
    coverage = f"coverage {percent(score.coverage)}"
    if score.gpus_uncertain:
        return f"Score: none against {against}; the number of GPUs differs, and cannot be checked."
    if score.total is None:
        return f"Score: none against {against}; {coverage}, at least {percent(LEAST_COVERAGE)} needed."
    low = min(score.areas, key=lambda area: score.areas[area])
    weakest = "" if score.uncapped == 100 else f"; weakest area: {low} {score.areas[low]:g}"
    capped = score.uncapped is not None and score.uncapped > score.total
    why = f" (capped by the verdict, otherwise {score.uncapped:g})" if capped else ""
    return f"Score: {score.total:g} of 100{why} against {against}{weakest}; {coverage}."


def _of_nothing(assessment: Assessment) -> list[str]:
    """Some of many: a configuration may be that of a whole site."""
    told = [f"{visible(each.device) or 'the host'} of {each.check}" for each in assessment.unmatched]
    more = f" and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
    return [f"Acknowledged, but not present: {', '.join(told[:_MOST_NAMED])}{more}."] if told else []


def _summary(report: Report) -> list[str]:
    """Score, what ran, what did not, and where the facts come from."""
    assessment = report.assessment
    known = sum(finding.acknowledged for finding in assessment.findings)
    silent = skip_counts(assessment.findings)
    more = "" if report.verbose else "; list them with -v"
    return [
        *([f"Acknowledged: {counted(known, 'finding')}, not counted."] if known else []),
        *_of_nothing(assessment),
        score_line(assessment),
        f"{what_ran(assessment)}.",
        *([f"Did not run: {silent}{more}."] if silent else []),
        *provenance.line(assessment.origin),
        *(closing(assessment.findings) if report.verbose or assessment.level == "quick" else []),
    ]
