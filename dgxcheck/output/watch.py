"""What the watch tells: lines, a table, metrics, entries of the journal."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable

from dgxcheck.facts.missing import Json
from dgxcheck.output.exposition import STATES, Series, bus_id, classic, metric, now
from dgxcheck.output.plain_text import at_most, columns, fitted, lines, visible
from dgxcheck.source.state_file import seconds_of
from dgxcheck.watch.event import ReportedEvent, as_json
from dgxcheck.watch.fold import Tally
from dgxcheck.watch.memory import Memory

SCHEMA = "dgxcheck/watch/1"


def json_line(reported: ReportedEvent) -> str:
    """One object in one line."""
    members: dict[str, Json] = {"schema": SCHEMA, **as_json(reported)}
    return json.dumps({name: visible(value) if isinstance(value, str) else value for name, value in members.items()})


def text_line(reported: ReportedEvent) -> str:
    """``2026-11-22T10:00:00Z  FAIL  0000:0a:00.0  Xid 79 (GPU has fallen off the bus)``"""
    when = reported.date or reported.logged or f"[{reported.event.seconds or 0.0:12.6f}]"
    return f"{when}  {described(reported)}"


def described(reported: ReportedEvent) -> str:
    """The same without its date."""
    event = reported.event
    again = f" ({event.count} times)" if event.count > 1 else ""
    if reported.total > event.count:
        again = f" ({event.count} more, {reported.total} in all)"
    if event.kind == "counter":
        again = f" (+{event.count})"
    return visible("  ".join(filter(None, (level(event.status.value), event.bdf, f"{event.text}{again}"))))


def level(status: str) -> str:
    """``FAIL``; ``INFO`` for what is no trouble. Four letters wide."""
    return ("INFO" if status == "pass" else status.upper()).ljust(4)


_LEAST_EVENTS = 5
_UNCOUNTED = ("finding", "cleared", "verdict", "note")


def table(memory: Memory, date: str, width: int, height: int) -> str:
    """As many lines as the terminal has, none longer than it is wide."""
    judged = memory.judged
    verdict = f"{judged.verdict}, judged {judged.date[11:19]}" if judged.verdict else "not judged yet"
    lost = f"; {memory.lost} log records lost" if memory.lost else ""
    head = [f"dgxcheck watch  {date}  verdict: {verdict}{lost}", ""]
    counted = _counted(memory.ledger.tallies.values())
    bad = [f"{level(each.status)} {key}: {each.text}" for key, each in memory.judged.findings.items()]
    room = max(0, height - len(head) - _LEAST_EVENTS - 4)
    body = [*_block("Counts", counted, room), *_block("Findings", bad, max(0, room - len(counted)))]
    left = max(1, height - len(head) - len(body) - 3)
    events = [
        f"{str(each.get('at'))[11:19]} {level(str(each.get('status')))} {each.get('bdf') or '-'}  {each.get('text')}"
        for each in list(memory.ledger.recent)[-left:]
    ]
    body += ["Last events", *(events or ["  none"])]
    return lines(fitted(map(visible, [*head, *body][: max(1, height - 1)]), width))


def _counted(tallies: Iterable[Tally]) -> list[str]:
    rows = [
        (level(other.worst.value), other.event.bdf or "-", other.event.kind, other.event.code or "-", str(other.count),
         other.last)
        for other in sorted(tallies, key=lambda tally: tally.last, reverse=True)
        if other.event.kind not in _UNCOUNTED
    ]  # fmt: skip
    return columns([("", "device", "event", "code", "count", "last"), *rows]) if rows else []


def _block(title: str, rows: list[str], room: int) -> list[str]:
    return [title, *at_most(rows, room, "  and {} more"), ""] if rows else []


def metrics(memory: Memory) -> str:
    """Counts by device, kind and code, and the last judgement."""
    tallies = [({"pci_bus_id": bus_id(bdf), "event": kind, "code": code}, tally)
               for (bdf, kind, code), tally in memory.ledger.tallies.items() if kind not in _UNCOUNTED]
    counted = [(labels, tally.count) for labels, tally in tallies]
    last = [(labels, seconds_of(tally.last)) for labels, tally in tallies]
    worst = [(labels, STATES[tally.worst.value]) for labels, tally in tallies]
    verdict: list[Series] = [({}, STATES[memory.judged.verdict])] if memory.judged.verdict else []
    judged: list[Series] = [({}, seconds_of(memory.judged.date))] if memory.judged.date else []
    bad = Counter({"warn": 0, "unknown": 0, "fail": 0})
    bad.update(finding.status for finding in memory.judged.findings.values())
    return classic([
        now("watch_timestamp_seconds"),
        metric("watch_events_total", counted),
        metric("watch_event_timestamp_seconds", last),
        metric("watch_event_status", worst),
        metric("watch_lost_records_total", [({}, memory.lost)]),
        metric("watch_verdict", verdict),
        metric("watch_judged_timestamp_seconds", judged),
        metric("watch_findings", [({"status": name}, n) for name, n in bad.items() if verdict]),
    ])  # fmt: skip


_PRIORITIES = {"pass": 6, "warn": 4, "unknown": 4, "fail": 2}
"""LOG_INFO, LOG_WARNING, LOG_CRIT"""


def journal_entry(reported: ReportedEvent) -> bytes:
    """Fields a line each: every value is one line."""
    event = reported.event
    fields = {
        "MESSAGE": described(reported),
        "PRIORITY": str(_PRIORITIES[event.status.value]),
        "SYSLOG_IDENTIFIER": "dgxcheck",
        "DGXCHECK_EVENT": event.kind,
        "DGXCHECK_ID": event.code.partition("/")[0] if event.kind in ("finding", "cleared") else event.code,
        "DGXCHECK_STATUS": event.status.value,
        "DGXCHECK_TOTAL": str(reported.total),
        "GPU_BDF": event.bdf,
    }
    return "".join(f"{name}={visible(value)}\n" for name, value in fields.items() if value).encode("utf-8", "replace")
