"""Run checks on a machine; verdict and counts of the findings, and those that the site accepts for a while."""

from __future__ import annotations

import shlex
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, judgements
from dgxcheck.checks.engine.expected import is_coherent
from dgxcheck.checks.engine.finding import BAD, FAULTY, WORST_FIRST, Finding, Judgement, Status, Subject, extended, skip
from dgxcheck.components.component import Component
from dgxcheck.facts.bdf import as_bdf, for_smi
from dgxcheck.facts.faults import UNRESPONSIVE, Fault
from dgxcheck.facts.missing import NeededFact, is_number, rows
from dgxcheck.facts.record import replace
from dgxcheck.settings import Acknowledgement, Settings


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
    yield from (row.name for row in rows(facts.network))
    yield from (row.name for row in rows(facts.disks))
    yield from (row.name for row in facts.arrays)


def _plain(name: str) -> str:
    """A bus id in any spelling as sysfs has it; other names in lower case."""
    return as_bdf(name, short=True) or name.lower()


def _names(subject: Subject) -> set[str]:
    """Bus id, UUID, serial number; the name too, except of GPUs, whose numbers change."""
    names = [subject.bdf, subject.uuid, subject.serial, subject.name if subject.kind != "gpu" else None]
    return {_plain(name) for name in names if isinstance(name, str)}


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


EXIT_CODES = {Status.PASS: 0, Status.WARN: 1, Status.FAIL: 2, Status.UNKNOWN: 3}
LEAST_CHECKS = 14
"""With fewer checks judged a machine does not pass. The output of nvidia-smi -q allows 17 and more, a table of
nvidia-smi 11 at most."""
MOST_OF_LOG = 6
"""A line of the kernel log lets a dozen checks say that nothing was logged: no more than so many of them count."""


def run(box: Box, checks: Iterable[Check], required: Collection[str] = ()) -> tuple[Finding, ...]:
    """Every finding, in the order of the checks; a required check that skipped is unknown instead."""
    ordered = tuple(checks)
    found: dict[str, list[Finding]] = {check.id: _findings(box, check) for check in ordered if not check.last}
    others = replace(box, found=tuple(finding for findings in found.values() for finding in findings))
    found |= {check.id: _findings(others, check) for check in ordered if check.last}
    findings: Iterable[Finding] = (finding for check in ordered for finding in found[check.id])
    findings = _without_echoes([*findings])
    if box.log.forgeable:
        findings = map(_of_syslog, findings)
    return tuple(_required(_at_site(finding, box.settings), required) for finding in findings)


def _without_echoes(findings: Sequence[Finding]) -> Iterator[Finding]:
    """What a device does not answer that another check reports as dead is skipped: it is no fault of its own."""
    dead = {each.subject.bdf: each.id for each in findings
            if each.status is Status.FAIL and each.judgement.fault in UNRESPONSIVE}  # fmt: skip
    dead.pop(None, None)
    for each in findings:
        unread, reported = each.status is Status.UNKNOWN and each.judgement.fault is None, dead.get(each.subject.bdf)
        if unread and reported is not None and each.subject.peer is None:
            message = f"{each.judgement.message}: see {reported}"
            judgement = skip("dependency-failed", message, *each.judgement.evidence)
            each = replace(each, judgement=judgement, blames=(), shared=None)
        yield each


def verdict(
    findings: Collection[Finding], least: int = 1, of_text: bool = False, required: Collection[str] = ()
) -> Status:
    """The worst status; unknown if nothing failed and fewer than ``least`` checks were judged.

    Acknowledged findings count as passed. Of a text, which shows what somebody chose to show, a warning is one however
    few checks it serves, and whatever it leaves open of the host; a device that does not answer, a check that failed
    and one that is ``required`` stand before it.
    """
    statuses = {Status.PASS if finding.acknowledged else finding.status for finding in findings}
    unknown = [finding for finding in findings if finding.status is Status.UNKNOWN]
    held = any(each.subject.kind != "host" or each.judgement.fault or each.id in required for each in unknown)
    if of_text and Status.WARN in statuses and not held:
        statuses.discard(Status.UNKNOWN)
    enough = {*FAULTY} if of_text else {Status.FAIL}
    if not enough & statuses and judged_checks(findings) < least:
        return Status.UNKNOWN
    return next((status for status in WORST_FIRST[:-1] if status in statuses), Status.UNKNOWN)


def judged_checks(findings: Iterable[Finding]) -> int:
    """How many checks judged a subject, of those of the kernel log ``MOST_OF_LOG``."""
    judged = {finding.id: finding.witness for finding in findings if finding.status is not Status.SKIP}
    of_log = sum(witness == "log" for witness in judged.values())
    return len(judged) - max(of_log - MOST_OF_LOG, 0)


def counts(findings: Iterable[Finding]) -> dict[Status, int]:
    """How many findings have each status, without acknowledged ones."""
    number = Counter(finding.status for finding in findings if not finding.acknowledged)
    return {status: number[status] for status in Status}


def _findings(box: Box, check: Check) -> list[Finding]:
    try:
        return [_finding(box, check, subject, judgement) for subject, judgement in judgements(check, box)]
    except Exception as error:  # noqa: BLE001 -- one broken check must not hide the findings of the others
        message = f"internal error in this check: {type(error).__name__}: {error}"
        broken = Judgement(Status.UNKNOWN, message, fault=Fault.CHECK_FAILED)
        return [Finding(id=check.id, subject=HOST, judgement=broken, source=check.source, remedy=check.remedy)]


def _finding(box: Box, check: Check, subject: Subject, judgement: Judgement) -> Finding:
    bad = judgement.status in BAD
    crossed = check.crossed if judgement.status is not Status.SKIP else None
    remedy = judgement.remedy or (judgement.fault.remedy if judgement.fault else "") or check.remedy
    if judgement.fault is not None and judgement.fault.soldered and is_coherent(box):
        remedy = judgement.fault.soldered
    if subject.kind == "interface":
        remedy = remedy.replace("INTERFACE", shlex.quote(subject.name))
    if bad and (device := for_smi(subject.bdf)):
        remedy = (remedy.replace(" -s BDF", "") if device.isdecimal() else remedy).replace(" BDF", f" {device}")
    return Finding(
        id=check.id,
        subject=subject,
        judgement=judgement,
        source=check.source,
        remedy=remedy,
        blames=_named(check.blames, box, subject, judgement) if bad else (),
        shared=check.shared(box, subject, judgement) if bad else None,
        crossed=_named(crossed, box, subject, judgement) if crossed is not None else (),
        traffic=check.traffic,
        witness=check.witness,
    )


def _named(
    rule: Callable[[Box, Subject, Judgement], Iterable[Component]], box: Box, subject: Subject, judgement: Judgement
) -> tuple[Component, ...]:
    """Each once; none where the rule needs a fact that is missing."""
    try:
        return tuple(dict.fromkeys(rule(box, subject, judgement)))
    except NeededFact:
        return ()


def _at_site(finding: Finding, settings: Settings) -> Finding:
    """A warn or fail with the severity that the site configured."""
    severity = settings.severities.get(finding.id)
    if severity is None or finding.status not in FAULTY:
        return finding
    return replace(finding, judgement=replace(finding.judgement, status=Status(severity)))


def _of_syslog(finding: Finding) -> Finding:
    """A bad finding of a log that any user can write to says so."""
    if finding.witness != "log" or finding.status not in FAULTY:
        return finding
    doubt = "; if this is a syslog file, any user can write to it: confirm with journalctl -k -o json"
    return replace(finding, judgement=extended(finding.judgement, doubt))


def _required(finding: Finding, required: Collection[str]) -> Finding:
    judgement = finding.judgement
    if finding.id not in required or judgement.status is not Status.SKIP:
        return finding
    message = f"required, but skipped ({judgement.reason}): {judgement.message}"
    return replace(finding, judgement=replace(judgement, status=Status.UNKNOWN, message=message, reason=""))
