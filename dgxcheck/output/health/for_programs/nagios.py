"""Findings as a Nagios plug-in prints them: one line, performance data, long text.

Performance data are ``'label'=value;warn;critical;least``, the two in Nagios' range syntax.

https://nagios-plugins.org/doc/guidelines.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.checks.engine.run import counts
from dgxcheck.output.health.for_programs.metrics import measurements, plain, ranges
from dgxcheck.output.health.headline import headline
from dgxcheck.output.health.instructions import remedies
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.output.report import HealthReport

_WORDS = {Status.PASS: "OK", Status.WARN: "WARNING", Status.FAIL: "CRITICAL", Status.UNKNOWN: "UNKNOWN"}
_RANGES = {Status.WARN: "0;", Status.FAIL: ";0"}
"""``warn;critical``: more than none is too many."""
_BARRED = re.compile(r"['=|\s]|[^ -~]")
"""What a label cannot hold."""
_BARE = re.compile(r"[\w.@:/-]+")
FIRST_LINE = 80
"""Characters of the first line that pagers and lists show."""


def render(report: HealthReport) -> str:
    """The verdict and what is to blame in one line of about 80 characters before the performance data."""
    assessment = report.assessment
    problems = [finding for status in BAD for finding in assessment.findings if finding.status is status]
    bad, known = ([finding for finding in problems if finding.acknowledged is is_known] for is_known in (False, True))
    seen = counts(assessment.findings)
    counted = (f"{status.value}={count};{_RANGES.get(status, ';')};0" for status, count in seen.items())
    performance = " ".join((*counted, *_score(assessment), *_measured(assessment)))
    remedy = remedies(assessment)
    explained = {key for cause in assessment.diagnosis.causes for key in cause.explains}
    loose = [_named(finding) for finding in bad if finding.key not in explained]
    first = f"{_first(assessment, loose, seen[Status.PASS])} | {performance}"
    return lines([first, *(_line(finding, remedy[finding.key]) for finding in (*bad, *known))])


def _score(assessment: Assessment) -> Iterator[str]:
    """Of boxes with a reference machine."""
    if assessment.score is not None and assessment.score.total is not None:
        yield f"score={assessment.score.total:g};;;0;100"
    if assessment.score is not None:
        yield f"coverage={assessment.score.coverage:g};;;0;1"


def _measured(assessment: Assessment) -> Iterator[str]:
    """What was measured, in the units of the checks, with the numbers that they compared with."""
    for quantity, finding, value in measurements(assessment.findings):
        warn, critical = ranges(quantity, finding, assessment.settings)
        yield f"{_label(finding, quantity.label)}={plain(value)};{warn};{critical};0"


def _label(finding: Finding, quantity: str) -> str:
    """Quoted only where it has to be: some readers keep the quotes."""
    subject = finding.subject
    named = (subject.name if subject.kind != "host" else "", subject.part, subject.peer.name if subject.peer else "")
    label = _BARRED.sub("_", "_".join(filter(None, (*named, quantity))))
    return label if _BARE.fullmatch(label) else f"'{label}'"


def _first(assessment: Assessment, loose: Sequence[str], passed: int) -> str:
    """The first cause with its figure and action; else what no cause explains."""
    head = f"DGXCHECK {_WORDS[assessment.verdict]} - "
    causes = assessment.causes
    left = len(causes) + len(loose) - 1
    more = f"; {left} more" if left > 0 else ""
    if causes:
        return f"{head}{headline(assessment, causes[0], FIRST_LINE - len(head) - len(more))}{more}".replace("|", "/")
    if loose:
        return f"{head}{loose[0]}{more}"
    return head + (f"{passed} checks passed" if passed else "nothing could be judged")


def _named(finding: Finding) -> str:
    subject = finding.subject
    name = subject.name if subject.kind != "host" else ""
    pair = f"{name}-{subject.peer.name}" if subject.peer else name
    return visible(f"{finding.id} {pair}".rstrip()).replace("|", "/")


def _line(finding: Finding, remedy: str) -> str:
    end = "" if finding.status is Status.UNKNOWN else f"; do: {remedy}"
    acknowledgement = finding.acknowledgement
    if acknowledgement is not None and finding.acknowledged:
        end = f"; acknowledged until {acknowledgement.expiry}: {acknowledgement.reason}"
    line = f"{finding.status.value.upper()} {_named(finding)}: {finding.judgement.message}{end}"
    return visible(line).replace("|", "/")
