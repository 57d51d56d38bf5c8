"""A health report as ``health --format json`` printed it, of this version or an older one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from dgxcheck.difference.findings import Report, Said, Status
from dgxcheck.reading import BadInput, Json

SCHEMA = "dgxcheck/health/1"
_STATUSES: Mapping[str, Status] = {word: word for word in get_args(Status)}


def report_of(document: Mapping[str, Json], path: str) -> Report:
    """Its findings and its score; BadInput where it is no such report."""
    findings = document.get("findings")
    if not isinstance(findings, list):
        raise BadInput(f"{path}: 'findings' is no list; a health report is what 'dgxcheck health --format json' prints")
    score, profile = document.get("score"), document.get("profile")
    total = score.get("total") if isinstance(score, dict) else None
    name = profile.get("name") if isinstance(profile, dict) else None
    return Report(
        findings=dict(_said(finding, number, path) for number, finding in enumerate(findings)),
        score=float(total) if isinstance(total, int | float) and not isinstance(total, bool) else None,
        against=name if isinstance(name, str) else "",
    )


def _said(finding: Json, number: int, path: str) -> tuple[str, Said]:
    if isinstance(finding, dict):
        key, said, subject = finding.get("key"), finding.get("status"), finding.get("subject")
        status = _STATUSES.get(said) if isinstance(said, str) else None
        message = finding.get("message")
        if isinstance(key, str) and status is not None and isinstance(subject, dict):
            names = [_text(each.get("name")) for each in (subject, finding.get("peer")) if isinstance(each, dict)]
            return key, Said(status=status, device=" - ".join(names), bdf=_text(subject.get("bdf")) or None,
                             message=_text(message))  # fmt: skip
    raise BadInput(f"{path}: finding {number + 1} has no key, status and subject")


def _text(said: Json) -> str:
    return said if isinstance(said, str) else ""
