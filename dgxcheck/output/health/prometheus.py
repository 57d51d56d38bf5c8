"""Findings as metrics, in the classic text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import time
from collections.abc import Iterable

from dgxcheck import __version__
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.checks.engine.run import EXIT_CODES, counts
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.action import first_remedy
from dgxcheck.diagnosis.causes import Diagnosis
from dgxcheck.facts.bdf import shown
from dgxcheck.output.exposition import Sample, metric
from dgxcheck.output.health.component_name import component_name
from dgxcheck.output.health.metrics import measurements
from dgxcheck.output.health.report import Report
from dgxcheck.output.plain_text import lines

CODES = {**EXIT_CODES, Status.SKIP: 4}
"""Value of ``dgxcheck_check_status``."""


def render(report: Report) -> str:
    """All metrics of one run; every check has its sample, passed or not."""
    assessment = report.assessment
    by_status = [({"status": status.value}, count) for status, count in counts(assessment.findings).items()]
    return lines(
        [
            *metric("up", "dgxcheck ran.", [({}, 1)]),
            *metric("build_info", "The version of dgxcheck.", [({"version": __version__}, 1)]),
            *metric("run_timestamp_seconds", "When the box was judged.", [({}, round(time.time(), 3))]),
            *metric("run_duration_seconds", "How long asking and judging took.", [({}, round(assessment.seconds, 3))]),
            *metric("verdict", "0 pass, 1 warn, 2 fail, 3 unknown.", [({}, EXIT_CODES[assessment.verdict])]),
            *_score(assessment),
            *metric("findings", "Findings by status.", by_status),
            *metric("check_status", "0 pass, 1 warn, 2 fail, 3 unknown, 4 skip.", map(_status, assessment.findings)),
            *_acknowledged(assessment.findings),
            *_causes(assessment.diagnosis),
            *_measured(assessment.findings),
        ]
    )


def _score(assessment: Assessment) -> list[str]:
    """Without a reference there is neither."""
    score = assessment.score
    if score is None:
        return []
    labels = {"profile": assessment.choice.profile.name if assessment.choice else "", "level": assessment.level}
    total = [] if score.total is None else [(labels, score.total)]
    return [
        *metric("score", "Share of the reference machine that is there, 0 to 100.", total),
        *metric("coverage", "Part of the score that could be read, 0 to 1.", [(labels, score.coverage)]),
    ]


def _status(finding: Finding) -> Sample:
    return {"check": finding.id, **_subject(finding)}, CODES[finding.status]


def _acknowledged(findings: Iterable[Finding]) -> list[str]:
    """Findings whose status stands, but which do not count in the verdict; no sample where there is none."""
    known = [({"check": finding.id, **_subject(finding)}, 1) for finding in findings if finding.acknowledged]
    return metric("check_acknowledged", "1 where the site's configuration acknowledges it.", known)


def _causes(found: Diagnosis) -> list[str]:
    """What is to blame and what to do first; the two counts are there on a healthy box too."""
    named = [
        ({**_component(cause.component), "action": first_remedy(cause.actions).step}, CODES[cause.severity])
        for cause in found.causes
    ]
    return [
        *metric("causes", "Components to blame for what was found.", [({}, len(found.causes))]),
        *metric("unexplained_findings", "Findings that no cause explains.", [({}, len(found.unexplained))]),
        *metric("cause_severity", "1 warn, 2 fail, 3 unknown, of a component to blame.", named),
    ]


def _component(component: Component) -> dict[str, str]:
    return {"kind": component.kind, "component": component_name(component), "pci_bus_id": shown(component.bdf) or ""}


def _measured(findings: Iterable[Finding]) -> list[str]:
    """What was measured, a metric per quantity; a finding that measured nothing has no sample there."""
    found: dict[tuple[str, str], list[Sample]] = {}
    for quantity, finding, value in measurements(findings):
        samples = found.setdefault((quantity.metric, quantity.text), [])
        samples.append((_subject(finding), value if quantity.scale == 1 else value * quantity.scale))
    return [line for (name, text), samples in found.items() for line in metric(name, text, samples)]


def _subject(finding: Finding) -> dict[str, str]:
    """``gpu`` is empty for what is no GPU, ``peer`` for what is no pair; ``device`` names any other part."""
    subject, peer = finding.subject, finding.subject.peer
    return {
        "gpu": subject.name if subject.kind == "gpu" else "",
        "pci_bus_id": shown(subject.bdf) or "",
        "peer": peer.name if peer else "",
        "device": "/".join(filter(None, (subject.name if subject.kind not in ("gpu", "host") else "", subject.part))),
    }
