"""Findings that a site knows and lives with for a while: they stay visible, and do not count."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from dgxcheck.checks.finding import Finding, Status, Subject
from dgxcheck.frozen import replace
from dgxcheck.settings import Acknowledgement

_BAD = (Status.WARN, Status.FAIL)


def today() -> str:
    """The date in UTC: ``2026-11-21``."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def acknowledged(findings: Iterable[Finding], known: Sequence[Acknowledgement], date: str) -> tuple[Finding, ...]:
    """The findings, those that warn or fail with the acknowledgement that is about them.

    One that no longer holds is kept beside the finding, with the reason; the finding counts again.
    """
    return tuple(_marked(finding, known, date) if finding.status in _BAD else finding for finding in findings)


def _marked(finding: Finding, known: Sequence[Acknowledgement], date: str) -> Finding:
    about = [replace(each, lapsed=_lapsed(each, finding, date)) for each in known if _is_about(each, finding)]
    holding = [each for each in about if not each.lapsed]
    return replace(finding, acknowledgement=(holding or about)[0]) if about else finding


def _is_about(known: Acknowledgement, finding: Finding) -> bool:
    """The check and, where it judges devices, this one; without a device it is about the host."""
    if known.check != finding.id:
        return False
    if not known.device:
        return finding.subject.kind == "host"
    return any(known.device.lower() in _names(end) for end in (finding.subject, finding.subject.peer) if end)


def _names(subject: Subject) -> set[str]:
    """Bus id with and without its domain, UUID, serial number; the name of what has no bus id."""
    names = [subject.bdf if subject.bdf else subject.name, subject.uuid, subject.serial]
    found = {name.lower() for name in names if isinstance(name, str) and name}
    return found | {name.removeprefix("0000:") for name in found}


def _lapsed(known: Acknowledgement, finding: Finding, date: str) -> str:
    """Why it no longer holds; empty while it does."""
    if date > known.expiry:
        return f"it ended {known.expiry}"
    if known.ceiling is None:
        return ""
    said = finding.judgement
    if isinstance(said.measured, bool) or not isinstance(said.measured, int | float):
        return f"nothing was measured to hold against its ceiling of {known.ceiling:g}"
    least = isinstance(said.expected, int | float) and said.measured < said.expected
    beyond = said.measured < known.ceiling if least else said.measured > known.ceiling
    return f"{said.measured:g} {said.unit} is beyond its ceiling of {known.ceiling:g}" if beyond else ""
