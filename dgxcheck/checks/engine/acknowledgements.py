"""Acknowledged findings: the site accepts them for a while; they stay visible and do not count."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import FAULTY, Finding, Subject
from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.host import Storage
from dgxcheck.facts.missing import Missing, is_number
from dgxcheck.facts.record import replace
from dgxcheck.settings import Acknowledgement


def today() -> str:
    """The date in UTC: ``2026-11-21``."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def acknowledged(findings: Iterable[Finding], entries: Sequence[Acknowledgement], date: str) -> tuple[Finding, ...]:
    """The findings; each that warns or fails with the acknowledgement that matches it.

    A lapsed acknowledgement stays with the finding, with the reason why it lapsed; the finding counts again.
    """
    return tuple(_with_entry(finding, entries, date) if finding.status in FAULTY else finding for finding in findings)


def _with_entry(finding: Finding, entries: Sequence[Acknowledgement], date: str) -> Finding:
    matching = [replace(entry, lapsed=_lapsed(entry, finding, date)) for entry in entries if _matches(entry, finding)]
    valid = [entry for entry in matching if not entry.lapsed]
    return replace(finding, acknowledgement=(valid or matching)[0]) if matching else finding


def _matches(entry: Acknowledgement, finding: Finding) -> bool:
    """Same check and device; an entry without a device matches a finding about the host."""
    if entry.check != finding.id:
        return False
    if not entry.device:
        return finding.subject.kind == "host"
    return any(_plain(entry.device) in _names(end) for end in (finding.subject, finding.subject.peer) if end)


def unmatched(findings: Collection[Finding], given: Sequence[Acknowledgement], box: Box) -> tuple[Acknowledgement, ...]:
    """Entries that match nothing although their check ran: no such device, or none named for a check of devices."""
    if not given:
        return ()
    ran = {finding.id for finding in findings}
    of_host = {finding.id for finding in findings if finding.subject.kind == "host"}
    subjects = [end for finding in findings for end in (finding.subject, finding.subject.peer) if end]
    present = {name for subject in (*subjects, *map(box.subject, box.topology.gpus)) for name in _names(subject)}
    present |= {_plain(name) for name in _devices(box)}
    return tuple(entry for entry in given if entry.check in ran
                 and (_plain(entry.device) not in present if entry.device else entry.check not in of_host))  # fmt: skip


def _devices(box: Box) -> Iterable[str]:
    """Names of all devices of the machine, judged or not."""
    yield from box.topology.functions
    yield from (device.name for device in box.topology.nics)
    facts = box.snapshot
    yield from () if isinstance(facts.network, Missing) else (row.name for row in facts.network)
    for rows in (facts.storage.disks, facts.storage.arrays) if isinstance(facts.storage, Storage) else ():
        yield from () if isinstance(rows, Missing) else (row.name for row in rows)


def _plain(name: str) -> str:
    """A bus id in any spelling as sysfs has it; other names in lower case."""
    return as_bdf(name, short=True) or name.lower()


def _names(subject: Subject) -> set[str]:
    """Bus id, UUID, serial number; the name too, except of GPUs, whose numbers change."""
    names = [subject.bdf, subject.uuid, subject.serial, subject.name if subject.kind != "gpu" else None]
    return {_plain(name) for name in names if isinstance(name, str) and name}


def _lapsed(entry: Acknowledgement, finding: Finding, date: str) -> str:
    """Why an acknowledgement lapsed; empty while it is valid."""
    if date > entry.expiry:
        return f"it expired on {entry.expiry}"
    if entry.ceiling is None:
        return ""
    measured, expected, unit = finding.judgement.measured, finding.judgement.expected, finding.judgement.unit
    if not is_number(measured):
        return f"there is no measured value to compare with its ceiling of {entry.ceiling:g}"
    low_is_bad = isinstance(expected, int | float) and measured < expected
    worse = measured < entry.ceiling if low_is_bad else measured > entry.ceiling
    return f"{measured:g} {unit} is worse than its ceiling of {entry.ceiling:g}" if worse else ""
