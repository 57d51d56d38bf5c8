"""Two judgements of the machine compared: what is newly wrong, what is right again, and the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dgxcheck.checks.engine.finding import Status
from dgxcheck.facts.record import Record
from dgxcheck.watch.event import TEXT_CHARACTERS, Event, Kind

MOST_FINDINGS = 512
KEY_CHARACTERS = 200


class Bad(Record, kw_only=False):
    """One bad finding."""

    status: str
    bdf: str
    text: str


class Judged(Record):
    """The last judgement."""

    verdict: str = ""
    """Empty before the first."""
    findings: Mapping[str, Bad] = {}
    """By key, without those of the kernel log, whose records are events themselves."""


def compared(old: Judged, document: Mapping[str, Any]) -> tuple[Judged, list[Event]]:
    """The new judgement by what the worker answered, and what is news: new or worse, right again, another verdict.

    A finding that is not judged now stays as it was; one whose device is gone is dropped without a word.
    """
    found = {key: old.findings[key] for key in document["unjudged"] if key in old.findings}
    found |= {
        key: Bad(each["status"], each["bdf"], each["text"][:TEXT_CHARACTERS])
        for key, each in document["findings"].items()
        if not each["log"]
    }
    new = Judged(verdict=document["verdict"], findings=dict([*found.items()][:MOST_FINDINGS]))
    events = [
        _event("finding", key, each, Status(each.status), "")
        for key, each in new.findings.items()
        if key not in old.findings or old.findings[key].status != each.status
    ]
    passed = (key for key in document["passed"] if key in old.findings)
    events += [_event("cleared", key, old.findings[key], Status.PASS, "no longer: ") for key in passed]
    if new.verdict != old.verdict:
        was = f", was {old.verdict}" if old.verdict else ""
        events.append(Event(kind="verdict", status=Status(new.verdict), text=f"verdict {new.verdict}{was}"))
    return new, events


def _event(kind: Kind, key: str, bad: Bad, status: Status, before: str) -> Event:
    text = f"{before}{key.partition('/')[0]}: {bad.text}"
    return Event(kind=kind, status=status, bdf=bad.bdf, code=key[:KEY_CHARACTERS], text=text[:TEXT_CHARACTERS])
