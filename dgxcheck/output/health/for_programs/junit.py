"""Findings as a JUnit report, for what runs burn-ins and shows test results.

One suite per run; a finding is a test case of class ``health.<what stands before the dot of its check>``. Fail is a
failure, unknown an error, skip is skipped. Warn is a failure of type ``warning`` where the exit code tells it, else it
passes with its message as output. https://github.com/testmoapp/junitxml
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from dgxcheck import __version__
from dgxcheck.checks.engine.finding import FAULTY, Finding, Status, Subject
from dgxcheck.diagnosis.model import Cause
from dgxcheck.facts.bdf import shown
from dgxcheck.output.health import overview
from dgxcheck.output.health.causes import fru_lines, steps
from dgxcheck.output.health.headline import headline
from dgxcheck.output.health.instructions import remedies
from dgxcheck.output.plain_text import visible
from dgxcheck.output.report import HealthReport


def render(report: HealthReport) -> str:
    """The report in ASCII, which reads the same in every encoding that a terminal or file may have."""
    assessment = report.assessment
    named = overview.host_name(assessment)
    remedy = remedies(assessment)
    causes = {key: cause for cause in assessment.causes for key in cause.explains}
    cases = [
        _case(finding, report.fail_on, _advice(finding, causes, assessment.found, remedy))
        for finding in assessment.findings
    ]
    tags = {"failures": "failure", "errors": "error", "skipped": "skipped"}
    totals = {name: str(sum(case.find(tag) is not None for case in cases)) for name, tag in tags.items()}
    numbers = {"tests": str(len(cases)), **totals, "time": f"{assessment.seconds:.3f}"}
    whole = Element("testsuites", {"name": "dgxcheck health", **numbers})
    when = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime())
    about = {"name": f"{named or 'unknown host'} {assessment.level}", "hostname": named, "timestamp": when}
    suite = SubElement(whole, "testsuite", {**about, **numbers})
    properties = SubElement(suite, "properties")
    for key, value in _properties(report):
        SubElement(properties, "property", {"name": visible(key), "value": visible(value)})
    suite.extend(cases)
    ElementTree.indent(whole, " ")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(whole, "us-ascii").decode("ascii")}\n'


def _advice(
    finding: Finding, causes: Mapping[str, Cause], found: Mapping[str, Finding], remedy: Mapping[str, str]
) -> list[str]:
    """The part, and every step of its cause with when it is due; without a cause the remedy."""
    cause = causes.get(finding.key)
    if cause is None:
        return [f"do: {remedy[finding.key]}"] if finding.status in FAULTY else []
    return [*fru_lines([cause]), *steps(cause, found, verbose=True)]


def _properties(report: HealthReport) -> Iterator[tuple[str, str]]:
    assessment = report.assessment
    origin = assessment.origin
    yield from (("tool_version", __version__), ("verdict", assessment.verdict.value), ("level", assessment.level))
    yield from (("exit_code", str(report.exit_code)), ("source", f"{origin.kind} {origin.name}".rstrip()))
    if assessment.choice is not None:
        yield "profile", assessment.choice.profile.name
    if assessment.score is not None and assessment.score.total is not None:
        yield "score", f"{assessment.score.total:g}"
    serials = {f"serial {each.subject.name} {each.subject.bdf}": each.subject.serial for each in assessment.findings}
    yield from ((f"cause {at}", headline(assessment, each)) for at, each in enumerate(assessment.causes, 1))
    yield from ((key, serial) for key, serial in serials.items() if isinstance(serial, str))


def _case(finding: Finding, fail_on: str, advice: Sequence[str]) -> Element:
    area = finding.id.partition(".")[0]
    case = Element("testcase", {"classname": f"health.{area}", "name": visible(_name(finding)), "time": "0"})
    judgement = finding.judgement
    message = visible(judgement.message)
    kind = {Status.FAIL: "failure", Status.UNKNOWN: "error", Status.SKIP: "skipped"}.get(finding.status, "system-out")
    if finding.status is Status.WARN and fail_on == "warn":
        kind = "failure"
    if finding.acknowledged:
        kind = "system-out"
    if kind == "system-out":
        SubElement(case, kind).text = "\n".join(_details(finding, advice))
    elif kind == "skipped":
        SubElement(case, kind, {"type": judgement.reason, "message": f"{judgement.reason}: {message}"})
    else:
        word = {Status.WARN: "warning"}.get(finding.status, finding.status.value)
        SubElement(case, kind, {"type": word, "message": message}).text = "\n".join(_details(finding, advice))
    return case


def _name(finding: Finding) -> str:
    """``pcie.width GPU2 0000:0a:00.0``: the same in every run."""
    ends = (" ".join(_words(subject)) for subject in (finding.subject, finding.subject.peer) if subject is not None)
    return " ".join((finding.id, " - ".join(filter(None, ends)))).rstrip()


def _words(subject: Subject) -> Iterator[str]:
    """Name, bus id and part; of the host the part alone."""
    named = "" if subject.kind == "host" else subject.name
    yield from filter(None, (named, shown(subject.bdf) if subject.bdf != subject.name else "", subject.part))


def _details(finding: Finding, advice: Sequence[str]) -> list[str]:
    """What was found, on what evidence, and what to do."""
    judgement = finding.judgement
    lines = [f"{finding.status.value}: {judgement.message}"]
    if judgement.measured is not None:
        expectation = "" if judgement.expected is None else f", expected {judgement.expected} {judgement.unit}".rstrip()
        lines.append(f"measured {judgement.measured} {judgement.unit}".rstrip() + expectation)
    lines += [f"{item.where}: {item.value}" for item in judgement.evidence]
    if (entry := finding.acknowledgement) is not None:
        lapsed = f"; lapsed: {entry.lapsed}" if entry.lapsed else ""
        lines += [f"acknowledged until {entry.expiry}: {visible(entry.reason)}{lapsed}"]
    return [*map(visible, (*lines, *advice))]
