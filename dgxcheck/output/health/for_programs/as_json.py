"""The document of schema ``dgxcheck/health/2``."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, Subject
from dgxcheck.checks.engine.run import counts
from dgxcheck.facts.bdf import shown
from dgxcheck.facts.measurement import Measurement, NotMeasured
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.output.health import host_use
from dgxcheck.output.json_values import compact, either, head, members, source
from dgxcheck.output.report import HealthReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dgxcheck.readiness.figures import Figure

SCHEMA = "dgxcheck/health/2"


def render(report: HealthReport) -> str:
    """Every finding, those that passed and those that skipped too."""
    assessment = report.assessment
    summary: dict[str, Json] = {status.value: count for status, count in counts(assessment.findings).items()}
    choice, diagnosis = assessment.choice, assessment.diagnosis
    accepted = sum(finding.acknowledged for finding in assessment.findings)
    unmatched: list[Json] = [{"check": each.check, "device": each.device or None} for each in assessment.unmatched]
    causes: list[Json] = []
    remedy: Mapping[str, str] = {}
    if diagnosis.causes:
        from dgxcheck.output.health.causes import as_json
        from dgxcheck.output.health.instructions import remedies

        causes, remedy = as_json(assessment), remedies(assessment)
    whole: dict[str, Json] = {
        **head(SCHEMA),
        **{key: value for name in assessment.host for key, value in either(name, assessment.host[name]).items()},
        "duration_seconds": round(assessment.seconds, 3),
        "source": source(assessment.origin),
        "profile": None if choice is None else members(choice, "name=profile.name title=profile.title how"),
        **members(assessment, "level verdict=verdict.value"),
        "score": _score(assessment),
        "summary": summary | ({"acknowledged": accepted} if accepted else {}) | {"exit_code": report.exit_code},
        "findings": [_finding(finding, remedy) for finding in assessment.findings],
        **({"acknowledged_but_not_here": unmatched} if unmatched else {}),
        "causes": causes,
        "unexplained": list(diagnosis.unexplained),
        "measurements": [_measurement(figure) for figure in assessment.figures],
        **host_use.as_json(assessment),
    }
    return compact(whole)


def _score(assessment: Assessment) -> Json:
    score = assessment.score
    if score is None:
        return None
    return {**members(score, "total coverage floor measured"), "usable_gpus": round(score.usable_gpus, 3),
            "level": assessment.level, "areas": {str(area): value for area, value in score.areas.items()}}


def _finding(finding: Finding, remedy: Mapping[str, str]) -> Json:
    key, judgement, entry = finding.key, finding.judgement, finding.acknowledgement
    return {
        "key": key,
        "id": finding.id,
        "subject": _subject(finding.subject),
        "peer": _subject(finding.subject.peer) if finding.subject.peer else None,
        **members(judgement, "status=status.value reason? fault=fault.word"),
        **members(judgement, "message measured expected unit?"),
        "threshold_source": finding.source,
        "evidence": [{"where": item.where, "value": item.value} for item in judgement.evidence],
        "remedy": remedy.get(key, finding.remedy),
        **({"acknowledged": members(entry, "reason expiry ceiling lapsed?")} if entry is not None else {}),
    }


def _measurement(figure: Figure) -> Json:
    """One figure, with its samples and what they are held to."""
    row = figure.row
    value = row.value
    return {
        **members(row, "kind a b?"),
        "value": value if isinstance(value, int | float) else None,
        **({"reason": value.reason} if isinstance(value, Missing) else {}),
        **({"reason": f"{value.reason}: {value}"} if isinstance(value, NotMeasured) else {}),
        **members(row, "unit? method? samples"),
        "spread": _spread(row),
        **members(figure, "expected verdict=verdict.value source?"),
        **members(row, "tool? how"),
    }


def _spread(row: Measurement) -> float | None:
    if len(row.samples) < 2 or not row.number or row.number < 0:
        return None
    spread = (max(row.samples) - min(row.samples)) / row.number
    return round(spread, 4) if isfinite(spread) else None


def _subject(subject: Subject) -> Json:
    named: dict[str, Json] = {"kind": subject.kind, "name": subject.name, "bdf": shown(subject.bdf)}
    return named | ({"part": subject.part} if subject.part else {}) | members(subject, "uuid serial slot")
