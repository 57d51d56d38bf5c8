"""Findings for people: the worst first, then what did not run and why, then the verdict."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Finding, Status, Subject, Witness
from dgxcheck.checks.engine.run import LEAST_CHECKS, counts, judged_checks
from dgxcheck.checks.engine.wording import counted
from dgxcheck.output import provenance
from dgxcheck.output.health import causes as health_causes
from dgxcheck.output.health import host_use
from dgxcheck.output.health.measurement_tables import tables
from dgxcheck.output.health.report import Report
from dgxcheck.output.plain_text import columns, lines, percent, visible
from dgxcheck.score.expectation import LEAST_COVERAGE
from dgxcheck.settings import THRESHOLDS, Settings

_ORDER = (Status.FAIL, Status.UNKNOWN, Status.WARN, Status.PASS, Status.SKIP)
_NUMBER = re.compile(r"\{([a-z0-9.-]+)\}")
"""The name of a threshold in the text of a rule."""
DEFAULTS = Settings()
_KINDS: Mapping[Witness, str] = {
    "state": "state", "log": "kernel log", "counters": "counter growth", "measurement": "measurements under load",
}  # fmt: skip
_HOW = {"named": "as requested", "product": "by product name", "gpus": "by GPU model only"}
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
    """The share of the reference machine's capability that is there."""
    choice, score = assessment.choice, assessment.score
    if choice is None or score is None:
        return "Score: none (no matching reference machine; list them with dgxcheck profiles)."
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


def _kinds(assessment: Assessment) -> str:
    """What the checks that ran looked at: `` (state, kernel log, counter growth)``; empty where none ran."""
    witnesses = {finding.witness for finding in assessment.findings if finding.status is not Status.SKIP}
    kinds = ", ".join(kind for witness, kind in _KINDS.items() if witness in witnesses)
    return f" ({kinds})" if kinds else ""


def _too_few(assessment: Assessment) -> str:
    """Why nothing is known to be wrong and the verdict is unknown all the same."""
    judged = judged_checks(assessment.findings)
    statuses = {finding.status for finding in assessment.findings if not finding.acknowledged}
    if assessment.verdict is not Status.UNKNOWN or Status.UNKNOWN in statuses or not judged:
        return ""
    return f" (too few different checks ran: {judged}, at least {LEAST_CHECKS} needed)"


def _of_nothing(assessment: Assessment) -> list[str]:
    """Some of many: a configuration may be that of a whole site."""
    told = [f"{visible(each.device) or 'the host'} of {each.check}" for each in assessment.unmatched]
    more = f" and {len(told) - _MOST_NAMED} more" if len(told) > _MOST_NAMED else ""
    return [f"Acknowledged, but not present: {', '.join(told[:_MOST_NAMED])}{more}."] if told else []


def _summary(assessment: Assessment) -> list[str]:
    """The last two lines are those of nvidia-healthmon, for scripts that read them."""
    findings = assessment.findings
    seen = counts(findings)
    skipped = Counter(finding.judgement.reason for finding in findings if finding.status is Status.SKIP)
    reasons = ", ".join(f"{count} {reason}" for reason, count in skipped.most_common())
    ran = len(findings) - seen[Status.SKIP]
    known = sum(finding.acknowledged for finding in findings)
    silent = seen[Status.UNKNOWN] + seen[Status.SKIP]
    return [
        f"Verdict: {assessment.verdict.value}{_too_few(assessment)};"
        f" {ran} of {counted(len(findings), 'check')} ran{_kinds(assessment)}.",
        *([f"Acknowledged: {counted(known, 'finding')}, not counted."] if known else []),
        *_of_nothing(assessment),
        _score(assessment),
        *([f"Skipped: {reasons}; list them with -v."] if reasons else []),
        *provenance.line(assessment.origin),
        f"System Results: {seen[Status.PASS]} success, {seen[Status.FAIL]} errors, {seen[Status.WARN]} warnings,"
        f" {silent} did not run",
        *(["One or more tests didn't run."] if silent else []),
    ]
