"""``dgxcheck health`` for people: verdict, devices at a glance, causes with actions, then what did not run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.by_nature.last_run import STATE_FILE
from dgxcheck.checks.engine.finding import FAULTY, WORST_FIRST, Finding, Status, Witness, counted, first_of
from dgxcheck.checks.engine.run import LEAST_CHECKS, counts, judged_checks
from dgxcheck.facts.typical import gathered
from dgxcheck.output.health import overview
from dgxcheck.output.health.finding_lines import (
    acknowledged,
    by_subject,
    noted,
    skip_counts,
    skipped,
    subject_name,
    unexplained,
    worst_first,
)
from dgxcheck.output.origin import source_line
from dgxcheck.output.plain_text import columns, lines, percent, visible, wrapped
from dgxcheck.output.report import HealthReport
from dgxcheck.score.expectation import LEAST_COVERAGE

_KINDS: dict[Witness, str] = {
    "state": "state", "log": "kernel log", "counters": "counter growth", "measurement": "measurements under load",
}  # fmt: skip


def verdict_line(assessment: Assessment) -> str:
    """``FAIL  memory of GPU2 0000:0a:00.0: 3 uncorrected memory errors -> drain, then reset GPU: nvidia-smi -r``

    The verdict's own finding, where no cause is as bad: beside a warning a GPU that does not answer.
    """
    head = assessment.verdict.value.upper() + _too_little(assessment)
    bad = worst_first(assessment.findings)
    if not bad:
        return f"{head}  {_without_findings(assessment)}"
    from dgxcheck.output.health.headline import LONGEST, headline, shortened

    causes = assessment.diagnosis.causes
    alone = bad[0].status is assessment.verdict and all(bad[0].status is not cause.severity for cause in causes)
    if not causes or alone:
        more = f"; {counted(len(bad) - 1, 'more finding')}" if bad[1:] else ""
        first = bad[0].remedy.partition("; ")[0] if bad[0].status in FAULTY else ""
        at, room = bad[0].subject, LONGEST - len(more)
        who, message = subject_name(at), bad[0].judgement.message
        what = shortened(f"{who}: {message}", room)
        if first:  # whole, as a part of a step lacks its conditions, beside the first clause with all its figures
            names = (who,) if at.bdf is None else (who, who.replace(f" {at.bdf}", ""))
            texts = (f"{name}: {said} -> {first}" for said in (message, message.partition("; ")[0]) for name in names)
            what = next((each for each in texts if len(each) <= room), what)
        return visible(f"{head}  {what}{more}")
    others = len(causes) - 1 + len(assessment.diagnosis.unexplained)
    unexplained = bool(assessment.diagnosis.unexplained)
    more = f" ({counted(others, 'more problem' if unexplained else 'more cause')})" if others else ""
    return f"{head}  {headline(assessment, causes[0], LONGEST - len(more))}{more}"


def what_ran(assessment: Assessment) -> str:
    """``410 of 485 checks ran (state, kernel log, counter growth)``"""
    ran = sum(finding.status is not Status.SKIP for finding in assessment.findings)
    kinds = _kinds(assessment)
    return f"{ran} of {counted(len(assessment.findings), 'check')} ran{f' ({kinds})' if kinds else ''}"


def _kinds(assessment: Assessment) -> str:
    """What the checks that ran looked at."""
    witnesses = {finding.witness for finding in assessment.findings if finding.status is not Status.SKIP}
    return ", ".join(kind for witness, kind in _KINDS.items() if witness in witnesses)


def _without_findings(assessment: Assessment) -> str:
    unread = _alarms(assessment.origin.alarms)
    if assessment.verdict is Status.PASS:
        found = f"no problems found{' in what was read' if unread else ''}; checked: {_kinds(assessment)}"
        unmeasured = "; nothing was measured" if assessment.level == "extended" and not assessment.figures else ""
        return f"{found}{unread}{unmeasured}"
    judged = judged_checks(assessment.findings)
    if not judged:
        return f"nothing could be judged{unread}"
    return f"nothing wrong was found{' in what was read' if unread else ''}, but {_few(judged)}{unread}"


def _few(judged: int) -> str:
    return f"too few checks ran for a pass: {judged} of {LEAST_CHECKS}"


def _alarms(lines: int) -> str:
    """The number of unread lines that may report a fault, for a text."""
    what = counted(lines, "line that mentions an error", "lines that mention errors")
    return f"; {what} {'was' if lines == 1 else 'were'} not recognised: see dgxcheck import --show" if lines else ""


def _too_little(assessment: Assessment) -> str:
    """Why the verdict is unknown where what was found is a warning: too few checks ran to say that it is no more."""
    worst = {finding.status for finding in worst_first(assessment.findings)}
    if assessment.verdict is not Status.UNKNOWN or Status.UNKNOWN in worst or not worst:
        return ""
    return f" ({_few(judged_checks(assessment.findings))})"


_HOW = {"named": "as requested", "product": "by product name", "gpus": "by GPU model only"}
_MOST_FINDINGS = 12


def render(report: HealthReport) -> str:
    """The verdict first; ``verbose``: also every finding by device, and every check that did not run."""
    assessment, width = report.assessment, report.width
    if report.brief:
        return lines(_brief(report))
    return lines([
        wrapped(verdict_line(assessment), width, 6),
        "",
        *overview.tables(assessment, width),
        *_problems(report),
        *_figures(report),
        *_host_use(report),
        *([*by_subject(assessment.findings), *skipped(assessment.findings)] if report.verbose else []),
        *(wrapped(line, width, 2) for line in _summary(report)),
    ])  # fmt: skip


_BRIEF = 16
"""Lines of the first cause, or fewer, so that 24 hold it."""


def _brief(report: HealthReport) -> Iterator[str]:
    """For a terminal of 24 lines: the verdict, the devices that are not ok, the first cause and the score."""
    from dgxcheck.output.health.sentences import device_list

    assessment, width = report.assessment, report.width
    yield wrapped(verdict_line(assessment), width, 6)
    names = gathered((status, device.name) for device, status in overview.verdicts(assessment))
    names.pop(Status.PASS, None)
    bad = "; ".join(f"{first_of(device_list(of).split(', '), 8)} {status.value}" for status, of in names.items())
    yield wrapped(f"Not ok: {bad}." if bad else "All GPUs and HCAs are ok.", width, 2)
    lines = "\n".join(_problems(report)).split("\n") if worst_first(assessment.findings) else []
    first = next((at for at, line in enumerate(lines) if at and line.startswith(("Cause 2", "Causes "))), len(lines))
    end = min(first, _BRIEF)
    while end < first and lines[end].startswith(" " * 4):  # not in the middle of a sentence
        end -= 1
    yield from lines[:end]
    yield wrapped(score_line(assessment), width, 2)


def _figures(report: HealthReport) -> list[str]:
    """Where they are what was asked for: of a measurement, or of imported results."""
    assessment = report.assessment
    if not assessment.figures or not (report.verbose or assessment.level == "extended" or _imported(assessment)):
        return []
    from dgxcheck.output.health.measurement_tables import tables

    return tables(assessment.figures)


def _imported(assessment: Assessment) -> bool:
    return assessment.origin.provenance.startswith("imported")


def _host_use(report: HealthReport) -> list[str]:
    assessment = report.assessment
    if not assessment.programs and assessment.host_load is None:
        return []
    from dgxcheck.output.health import host_use

    return host_use.as_text(assessment, report.verbose)


def _problems(report: HealthReport) -> list[str]:
    """Causes with the findings that support them, then the findings without a cause, then what the site accepts."""
    assessment, width = report.assessment, report.width
    elsewhere = assessment.origin.kind == "report"
    lines: list[str] = []
    if assessment.diagnosis.causes:
        from dgxcheck.output.health import causes

        lines += causes.as_text(assessment, report.verbose, width, elsewhere)
    left = worst_first(assessment.unexplained)
    most = len(left) if report.verbose or len(left) <= _MOST_FINDINGS else _MOST_FINDINGS - 1
    for before, finding in zip([None, *left], left[:most], strict=False):
        again = before is not None and finding.status is Status.UNKNOWN and before.remedy == finding.remedy
        lines += unexplained(finding, width)[: 1 if again else None]
    lines += [f"and {len(left) - most} more; list them with -v"] if left[most:] else []
    for finding in assessment.findings:
        lines += acknowledged(finding, width)
    of_text = elsewhere or _imported(assessment)
    notes = [each for each in assessment.findings if of_text or each.subject.part == STATE_FILE]
    lines += noted(notes, width) if not report.verbose else []
    return [*lines, ""] if lines else []


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
    weakest = "" if score.areas[low] == 100 else f"; weakest area: {low} {score.areas[low]:g}"
    usable = f"; {score.usable_gpus:.0%} of the GPUs usable" if score.usable_gpus < 1 else ""
    numbers = ", ".join(map(str, score.uncounted))
    beside = f"; not counted: cause{'s' * (len(score.uncounted) > 1)} {numbers}" if numbers else ""
    return f"Score: {score.total:g} of 100 against {against}{usable}{weakest}{beside}; {coverage}."


def _of_nothing(assessment: Assessment) -> list[str]:
    """Some of many: a configuration may be that of a whole site."""
    lines = [f"{visible(each.device) or 'the host'} of {each.check}" for each in assessment.unmatched]
    return [f"Acknowledged, but not present: {first_of(lines)}."] if lines else []


def _summary(report: HealthReport) -> list[str]:
    """Score, what ran, what did not, and where the facts come from."""
    assessment = report.assessment
    accepted = sum(finding.acknowledged for finding in assessment.findings)
    silent = skip_counts(assessment.findings)
    more = "" if report.verbose else "; list them with -v"
    return [
        *([f"Acknowledged: {counted(accepted, 'finding')}, not counted."] if accepted else []),
        *_of_nothing(assessment),
        score_line(assessment),
        f"{what_ran(assessment)}.",
        *([f"Did not run: {silent}{more}."] if silent else []),
        *source_line(assessment.origin),
        *(closing(assessment.findings) if report.verbose or assessment.level == "quick" else []),
    ]


def healthmon(report: HealthReport) -> str:
    """A line per finding, the worst first; then healthmon's totals."""
    findings = report.assessment.findings
    rows = [_cells(finding) for finding in sorted(findings, key=lambda finding: WORST_FIRST.index(finding.status))]
    return lines([*(columns(rows) if rows else []), "", *closing(findings)])


_NOT_PROMISED = ("not-in-level", "not-supported", "not-configured", "no-reference", "no-history")


def closing(findings: Sequence[Finding]) -> list[str]:
    """The last two lines of nvidia-healthmon, for scripts that read them. What is unknown did not run, nor what was
    skipped, unless this level, machine or configuration promises nothing of it.

    https://docs.nvidia.com/deploy/healthmon-user-guide/index.html
    """
    seen = counts(findings)
    skipped = [finding for finding in findings if finding.status is Status.SKIP]
    missing = skipped if len(skipped) == len(findings) else [
        finding for finding in skipped if finding.judgement.reason not in _NOT_PROMISED
    ]  # fmt: skip
    silent = seen[Status.UNKNOWN] + len(missing)
    ran = f"{seen[Status.PASS]} success, {seen[Status.FAIL]} errors, {seen[Status.WARN]} warnings"
    return [f"System Results: {ran}, {silent} did not run", *(["One or more tests didn't run."] if silent else [])]


def _cells(finding: Finding) -> tuple[str, ...]:
    judgement = finding.judgement
    reason = f"{judgement.reason}: " if judgement.reason else ""
    place = visible(subject_name(finding.subject))
    return (finding.status.value.upper().ljust(7), finding.id, place, visible(f"{reason}{judgement.message}"))
