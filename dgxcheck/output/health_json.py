"""The document of schema ``dgxcheck/health/1``."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence

from dgxcheck import __version__
from dgxcheck.checks.finding import Finding, Status, Subject
from dgxcheck.checks.run import counts
from dgxcheck.output.json_members import either, source
from dgxcheck.reading import Json, Missing
from dgxcheck.source.protocol import Origin

SCHEMA = "dgxcheck/health/1"
LEVEL = "quick"
"""State read once; growth of counters and measurements are levels of their own."""


def document(
    findings: Sequence[Finding],
    verdict: Status,
    exit_code: int,
    origin: Origin,
    host: Mapping[str, str | Missing],
    seconds: float,
) -> str:
    """``host`` has ``host`` and ``boot_id``; ``seconds`` is how long asking and judging took."""
    whole: dict[str, Json] = {
        "schema": SCHEMA,
        "tool_version": __version__,
        "generated_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        **{key: value for name in host for key, value in either(name, host[name]).items()},
        "duration_seconds": round(seconds, 3),
        "source": source(origin),
        "level": LEVEL,
        "verdict": verdict.value,
        "summary": {**{status.value: count for status, count in counts(findings).items()}, "exit_code": exit_code},
        "findings": [_finding(finding) for finding in findings],
    }
    return json.dumps(whole, indent=1) + "\n"


def _finding(finding: Finding) -> Json:
    said = finding.judgement
    return {
        "key": finding.key,
        "id": finding.id,
        "subject": _subject(finding.subject),
        "status": said.status.value,
        "reason": said.reason or None,
        "message": said.message,
        "measured": said.measured,
        "expected": said.expected,
        "unit": said.unit or None,
        "threshold_source": finding.source,
        "evidence": [{"where": each.where, "value": each.value} for each in said.evidence],
        "remedy": finding.remedy,
    }


def _subject(subject: Subject) -> Json:
    named: dict[str, Json] = {"kind": subject.kind, "name": subject.name, "bdf": subject.bdf}
    for key in ("uuid", "serial", "slot"):
        named |= either(key, getattr(subject, key))
    return named
