"""Read a report of ``health --format json``, of this version or an older one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from dgxcheck.difference.findings import FindingStatus, FindingSummary, HealthSummary
from dgxcheck.facts.missing import BadInput, Json, is_number, text_of

_FAMILY = "dgxcheck/health/"
SCHEMAS = (f"{_FAMILY}1", f"{_FAMILY}2")
"""They differ in causes and actions; findings and score are the same."""
_STATUSES: Mapping[str, FindingStatus] = {word: word for word in get_args(FindingStatus)}


def is_report(document: Mapping[str, Json], path: str) -> bool:
    """Is it a health report? BadInput for an unknown version of the schema."""
    schema = document.get("schema")
    if isinstance(schema, str) and schema.startswith(_FAMILY) and schema not in SCHEMAS:
        raise BadInput(f"{path}: unknown schema {schema[:80]!r}; this version reads {' and '.join(SCHEMAS)}")
    return schema in SCHEMAS


def report_of(document: Mapping[str, Json], path: str) -> HealthSummary:
    """Findings and score of the report; BadInput names the member that is not valid."""
    if not isinstance(findings := document.get("findings"), list):
        raise BadInput(f"{path}: 'findings' is not a list; expected a report of 'dgxcheck health --format json'")
    total, name = (_member(document, *member, path) for member in (("score", "total"), ("profile", "name")))
    if not (total is None or (is_number(total) and 0 <= total <= 100)):
        raise BadInput(f"{path}: 'score' has no total between 0 and 100")
    if not (name is None or isinstance(name, str)):
        raise BadInput(f"{path}: 'profile' has no name")
    return HealthSummary(
        findings=dict(_finding(finding, number, path) for number, finding in enumerate(findings)),
        score=None if total is None else float(total),
        against=name or "",
    )


def _member(document: Mapping[str, Json], name: str, member: str, path: str) -> Json:
    """A member of an object that may be null or absent."""
    if (value := document.get(name)) is not None and not isinstance(value, dict):
        raise BadInput(f"{path}: {name!r} is not an object")
    return value.get(member) if value else None


def _finding(finding: Json, number: int, path: str) -> tuple[str, FindingSummary]:
    if isinstance(finding, dict):
        key, status_text, subject = finding.get("key"), finding.get("status"), finding.get("subject")
        status = _STATUSES.get(status_text) if isinstance(status_text, str) else None
        message = finding.get("message")
        if isinstance(key, str) and status is not None and isinstance(subject, dict):
            names = [text_of(named.get("name")) for named in (subject, finding.get("peer")) if isinstance(named, dict)]
            return key, FindingSummary(status=status, device=" - ".join(names), bdf=text_of(subject.get("bdf")) or None,
                             message=text_of(message))  # fmt: skip
    raise BadInput(f"{path}: finding {number + 1} lacks a valid key, status or subject")
