"""Findings that a site knows and lives with for a while: they stay visible, and do not count."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding, Status, Subject
from dgxcheck.facts.host import Storage
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace
from dgxcheck.settings import Acknowledgement

_BAD = (Status.WARN, Status.FAIL)
_DOMAIN = re.compile(r"^0+:(?=[0-9a-f]{2}:)|^0{4}(?=[0-9a-f]{4}:)")
"""``0000:`` and nvidia-smi's ``00000000:``; the half of ``00000001:`` that says nothing."""


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
    return any(_plain(known.device) in _names(end) for end in (finding.subject, finding.subject.peer) if end)


def unmatched(
    findings: Collection[Finding], known: Sequence[Acknowledgement], box: Box
) -> tuple[Acknowledgement, ...]:
    """Those whose check ran, and whose device is not here; or which name none, where the check judges devices."""
    ran = {finding.id for finding in findings}
    of_host = {finding.id for finding in findings if finding.subject.kind == "host"}
    subjects = [end for each in findings for end in (each.subject, each.subject.peer) if end]
    here = {name for each in (*subjects, *map(box.subject, box.topology.gpus)) for name in _names(each)}
    here |= {_plain(name) for name in _listed(box)}
    return tuple(each for each in known if each.check in ran
                 and (_plain(each.device) not in here if each.device else each.check not in of_host))  # fmt: skip


def _listed(box: Box) -> Iterable[str]:
    """What may be named of the machine, though no check has said anything of it."""
    yield from box.topology.functions
    yield from (device.name for device in box.topology.devices if device.kind == "nic")
    facts = box.snapshot
    yield from () if isinstance(facts.network, Missing) else (row.name for row in facts.network)
    for rows in (facts.storage.disks, facts.storage.arrays) if isinstance(facts.storage, Storage) else ():
        yield from () if isinstance(rows, Missing) else (row.name for row in rows)


def _plain(name: str) -> str:
    """However a bus id is spelt."""
    return _DOMAIN.sub("", name.lower())


def _names(subject: Subject) -> set[str]:
    """Bus id, UUID, serial number; of all but a GPU, whose number is not its own, the name too."""
    names = [subject.bdf, subject.uuid, subject.serial, subject.name if subject.kind != "gpu" else None]
    return {_plain(name) for name in names if isinstance(name, str) and name}


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
