"""Findings as metrics, in the classic text format of Prometheus.

https://prometheus.io/docs/instrumenting/exposition_formats/
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping

from dgxcheck import __version__
from dgxcheck.checks.finding import Finding, Status
from dgxcheck.checks.run import EXIT_CODES, counts
from dgxcheck.output.health_report import Report
from dgxcheck.output.plain import lines, visible

CODES = {**EXIT_CODES, Status.SKIP: 4}
"""Value of ``dgxcheck_check_status``."""
Sample = tuple[Mapping[str, str], int | float]


def render(report: Report) -> str:
    """All metrics of one run; every check has its sample, passed or not."""
    by_status = [({"status": status.value}, count) for status, count in counts(report.findings).items()]
    return lines(
        [
            *_metric("up", "dgxcheck ran.", [({}, 1)]),
            *_metric("build_info", "The version of dgxcheck.", [({"version": __version__}, 1)]),
            *_metric("run_timestamp_seconds", "When the box was judged.", [({}, round(time.time(), 3))]),
            *_metric("run_duration_seconds", "How long asking and judging took.", [({}, round(report.seconds, 3))]),
            *_metric("verdict", "0 pass, 1 warn, 2 fail, 3 unknown.", [({}, EXIT_CODES[report.verdict])]),
            *_score(report),
            *_metric("findings", "Findings by status.", by_status),
            *_metric("check_status", "0 pass, 1 warn, 2 fail, 3 unknown, 4 skip.", map(_status, report.findings)),
        ]
    )


def _score(report: Report) -> list[str]:
    """Without a reference there is neither."""
    score = report.score
    if score is None:
        return []
    labels = {"profile": report.choice.profile.name if report.choice else "", "level": report.level}
    total = [] if score.total is None else [(labels, score.total)]
    return [
        *_metric("score", "Share of the reference machine that is there, 0 to 100.", total),
        *_metric("coverage", "Part of the score that could be read, 0 to 1.", [(labels, score.coverage)]),
    ]


def _status(finding: Finding) -> Sample:
    """``gpu`` is empty for what is no GPU, ``peer`` for what is no pair; ``device`` names any other part."""
    subject, peer = finding.subject, finding.subject.peer
    labels = {
        "check": finding.id,
        "gpu": subject.name if subject.kind == "gpu" else "",
        "pci_bus_id": subject.bdf or "",
        "peer": peer.name if peer else "",
        "device": "/".join(filter(None, (subject.name if subject.kind not in ("gpu", "host") else "", subject.part))),
    }
    return labels, CODES[finding.status]


def _metric(name: str, text: str, samples: Iterable[Sample]) -> list[str]:
    head = [f"# HELP dgxcheck_{name} {text}", f"# TYPE dgxcheck_{name} gauge"]
    return [*head, *(f"dgxcheck_{name}{_labels(labels)} {value!r}" for labels, value in samples)]


def _labels(labels: Mapping[str, str]) -> str:
    return "{" + ",".join(f'{key}="{_escaped(value)}"' for key, value in labels.items()) + "}" if labels else ""


def _escaped(value: str) -> str:
    return visible(value).replace("\\", r"\\").replace('"', r"\"")
