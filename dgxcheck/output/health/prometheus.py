"""Findings and error counters as metrics, in the classic text format of Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping

from dgxcheck import __version__
from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.engine.run import counts
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.action import first_remedy
from dgxcheck.diagnosis.causes import Diagnosis
from dgxcheck.facts.missing import Missing
from dgxcheck.output.exposition import STATES, VERDICT_VALUES, Family, Sample, classic, metric
from dgxcheck.output.health.component_name import component_name
from dgxcheck.output.health.error_counters import error_counters
from dgxcheck.output.health.labels import bus_id, gpu_labels, labels_of_gpus, subject_labels
from dgxcheck.output.health.metrics import measurements
from dgxcheck.output.health.report import Report

_Gpus = Mapping[str, Mapping[str, str]]


def render(report: Report) -> str:
    """All metrics of one run in the classic format."""
    return classic(families(report))


def families(report: Report) -> list[Family]:
    """All metrics of one run; every check has its sample, passed or not."""
    assessment = report.assessment
    gpus = labels_of_gpus(assessment)
    by_status = [({"status": status.value}, count) for status, count in counts(assessment.findings).items()]
    return [
        metric("up", "dgxcheck ran.", [({}, 1)]),
        metric("build_info", "The version of dgxcheck.", [({"version": __version__}, 1)]),
        metric("gpu_info", "The GPUs.", _gpus(assessment)),
        metric("run_timestamp_seconds", "When the box was judged.", [({}, round(time.time(), 3))]),
        metric("run_duration_seconds", "How long asking and judging took.", [({}, round(assessment.seconds, 3))]),
        metric("verdict", f"{VERDICT_VALUES}.", [({}, STATES[assessment.verdict.value])]),
        *_score(assessment),
        metric("findings", "Findings by status.", by_status),
        metric("check_status", f"-1 skip, {VERDICT_VALUES}.", _statuses(assessment.findings, gpus)),
        *_acknowledged(assessment.findings, gpus),
        *_causes(assessment.diagnosis),
        *_measured(assessment.findings, gpus),
        *error_counters(assessment),
    ]


def _gpus(assessment: Assessment) -> Iterator[Sample]:
    """Those that NVML lists. No serial numbers: metrics are usually readable for the whole network."""
    nvml = assessment.snapshot.gpu
    labels = {gpu.bdf: gpu_labels(gpu) for gpu in assessment.topology.gpus}
    if not isinstance(nvml, Missing):
        for gpu in nvml.gpus:
            more = {"model": gpu.name, "driver_version": nvml.driver_version, "vbios": gpu.vbios}
            known = {key: "" if isinstance(value, Missing) else value for key, value in more.items()}
            yield {**labels.get(gpu.bdf, {}), **known}, 1


def _score(assessment: Assessment) -> list[Family]:
    """Without a reference there is neither."""
    score = assessment.score
    if score is None:
        return []
    labels = {"profile": assessment.choice.profile.name if assessment.choice else "", "level": assessment.level}
    total = [] if score.total is None else [(labels, score.total)]
    return [
        metric("score", "Share of the reference machine that is there, 0 to 100.", total),
        metric("coverage", "Part of the score that could be read, 0 to 1.", [(labels, score.coverage)]),
    ]


def _statuses(findings: Iterable[Finding], gpus: _Gpus) -> Iterator[Sample]:
    for finding in findings:
        yield {"check": finding.id, **subject_labels(finding, gpus)}, STATES[finding.status.value]


def _acknowledged(findings: Iterable[Finding], gpus: _Gpus) -> list[Family]:
    """Findings whose status stands, but which do not count in the verdict; no sample where there is none."""
    known = [
        ({"check": finding.id, **subject_labels(finding, gpus)}, 1) for finding in findings if finding.acknowledged
    ]
    return [metric("check_acknowledged", "1 where the site's configuration acknowledges it.", known)]


def _causes(found: Diagnosis) -> list[Family]:
    """What is to blame and what to do first; the two counts are there on a healthy box too."""
    named = [
        ({**_component(cause.component), "action": first_remedy(cause.actions).step}, STATES[cause.severity.value])
        for cause in found.causes
    ]
    return [
        metric("causes", "Components to blame for what was found.", [({}, len(found.causes))]),
        metric("unexplained_findings", "Findings that no cause explains.", [({}, len(found.unexplained))]),
        metric("cause_severity", "1 warn, 2 unknown, 3 fail, of a component to blame.", named),
    ]


def _component(component: Component) -> dict[str, str]:
    return {"kind": component.kind, "component": component_name(component), "pci_bus_id": bus_id(component.bdf)}


def _measured(findings: Iterable[Finding], gpus: _Gpus) -> list[Family]:
    """What was measured, a metric per quantity; a finding that measured nothing has no sample there."""
    found: dict[tuple[str, str], list[Sample]] = {}
    for quantity, finding, value in measurements(findings):
        samples = found.setdefault((quantity.metric, quantity.text), [])
        samples.append((subject_labels(finding, gpus), value if quantity.scale == 1 else value * quantity.scale))
    return [metric(name, text, samples) for (name, text), samples in found.items()]
