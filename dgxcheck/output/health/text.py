"""Findings for people: the worst first, then what did not run and why, then the verdict."""

from __future__ import annotations

import re
from collections import Counter

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Finding, Status, Subject
from dgxcheck.checks.engine.run import counts
from dgxcheck.output import provenance
from dgxcheck.output.health import causes as health_causes
from dgxcheck.output.health import host_use
from dgxcheck.output.health.measurement_tables import tables
from dgxcheck.output.health.report import Report
from dgxcheck.output.plain_text import columns, lines, visible
from dgxcheck.settings import THRESHOLDS, Settings

_ORDER = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.SKIP)
_NUMBER = re.compile(r"\{([a-z0-9.-]+)\}")
"""The name of a threshold in the text of a rule."""
DEFAULTS = Settings()
_LEVELS = {
    "quick": "state read once",
    "default": "state, kernel log and growth of counters",
    "extended": "state, kernel log and growth of counters",
}
_HOW = {"named": "as asked", "product": "by its product name", "gpus": "by its GPUs alone"}
_TOLD = (Status.FAIL, Status.UNKNOWN, Status.WARN)
_MOST_NAMED = 4


def render(report: Report) -> str:
    """One line per finding that is not a pass and its remedy below; with ``verbose`` every finding."""
    assessment = report.assessment
    ordered = sorted(assessment.findings, key=_rank)
    shown = [finding for finding in ordered if report.verbose or finding.status in _TOLD]
    table = columns([_cells(finding) for finding in shown]) if shown else []
    explained = {key for cause in assessment.diagnosis.causes for key in cause.explains}
    told: list[str] = []
    for finding, line in zip(shown, table, strict=True):
        told += [line, *_below(finding, finding.key in explained)]
    causes = health_causes.as_text(assessment.diagnosis, assessment.findings, report.verbose)
    used = host_use.as_text(assessment, report.verbose)
    measured = tables(assessment.figures) if report.verbose or assessment.level == "extended" else []
    found = [*told, *([""] if told else []), *causes, *([""] if causes else [])]
    return lines([*found, *measured, *used, *_summary(assessment)])


def _rank(finding: Finding) -> tuple[int, bool]:
    """What the site has acknowledged stands below all that counts."""
    place = _ORDER.index(finding.status)
    return (_ORDER.index(Status.WARN), True) if finding.acknowledged else (place, False)


def _below(finding: Finding, explained: bool) -> list[str]:
    """What to do, or why nothing is to be done now; of what a cause explains the cause says it."""
    if finding.status not in (Status.WARN, Status.FAIL):
        return []
    remedy = [] if explained else [f"         do: {finding.remedy}"]
    known = finding.acknowledgement
    if known is None:
        return remedy
    said = f"acknowledged until {known.expiry}: {visible(known.reason)}"
    if finding.acknowledged:
        return [f"         {said}"]
    return [f"         {said}; lapsed: {known.lapsed}", *remedy]


def _score(assessment: Assessment) -> str:
    """How near to the reference machine."""
    choice, score = assessment.choice, assessment.score
    if choice is None or score is None:
        return "Score: none, for there is no reference machine; dgxcheck profiles lists them."
    against = f"{visible(choice.profile.name)} ({_HOW[choice.how]})"
    if score.total is None:
        return f"Score: none against {against}: only {score.coverage:.0%} of it could be read."
    low = min(score.areas, key=lambda area: score.areas[area])
    lowest = "" if score.total == 100 else f", lowest {low} {score.areas[low]:g}"
    return f"Score: {score.total:g} of 100 against {against}{lowest}; coverage {score.coverage:g}."


def explained(check: Check, settings: Settings) -> str:
    """What ``--explain`` prints."""
    told = [check.id, f"  Rule:   {rule(check, settings)}", f"  Source: {check.source}"]
    for name in _NUMBER.findall(check.rule):
        at_site = f"{settings.path}; default {_number(name, DEFAULTS)}" if name in settings.thresholds else ""
        told.append(f"  {name}: {_number(name, settings)} ({at_site or THRESHOLDS[name].source})")
    return lines([*told, f"  Remedy: {check.remedy}."])


def rule(check: Check, settings: Settings) -> str:
    """The rule of a check with its thresholds as numbers."""
    return _NUMBER.sub(lambda name: _number(name[1], settings), check.rule)


def _number(name: str, settings: Settings) -> str:
    return f"{settings.limit(name):g} {THRESHOLDS[name].unit}"


def _cells(finding: Finding) -> tuple[str, ...]:
    subject = finding.subject
    said = finding.judgement
    reason = f"{said.reason}: " if said.reason else ""
    return (
        finding.status.value.upper().ljust(7),
        finding.id,
        visible(_name(subject)),
        visible(f"{reason}{said.message}"),
    )


def _name(subject: Subject) -> str:
    name = f"{subject.name} {subject.bdf}" if subject.bdf and subject.bdf not in subject.name else subject.name
    return f"{name} - {_name(subject.peer)}" if subject.peer else name


def _load(assessment: Assessment) -> str:
    """Was anything measured?"""
    if assessment.figures:
        return ", measurements under load"
    return ", no load" if assessment.level == "extended" else ""


def _of_nothing(assessment: Assessment) -> list[str]:
    """Some of many: a configuration may be that of a whole site."""
    told = [f"{visible(each.device) or 'the host'} of {each.check}" for each in assessment.unmatched]
    more = f" and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
    return [f"Acknowledged, but not here: {', '.join(told[:_MOST_NAMED])}{more}."] if told else []


def _summary(assessment: Assessment) -> list[str]:
    """The last two lines are those of nvidia-healthmon, for scripts that read them."""
    findings = assessment.findings
    seen = counts(findings)
    skipped = Counter(finding.judgement.reason for finding in findings if finding.status is Status.SKIP)
    reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.most_common())
    judged = len(findings) - seen[Status.SKIP]
    known = sum(finding.acknowledged for finding in findings)
    silent = seen[Status.UNKNOWN] + seen[Status.SKIP]
    return [
        f"Verdict: {assessment.verdict.value}; {judged} of {len(findings)} judged,"
        f" {_LEVELS[assessment.level]}{_load(assessment)}.",
        *([f"Acknowledged: {known}, which do not count."] if known else []),
        *_of_nothing(assessment),
        _score(assessment),
        *([f"Skipped: {reasons}; -v names them."] if reasons else []),
        *provenance.line(assessment.origin),
        f"System Results: {seen[Status.PASS]} success, {seen[Status.FAIL]} errors, {seen[Status.WARN]} warnings,"
        f" {silent} did not run",
        *(["One or more tests didn't run."] if silent else []),
    ]
