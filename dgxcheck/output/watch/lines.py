"""Events as lines: JSON of ``dgxcheck/watch/1`` for programs, or text for people."""

from __future__ import annotations

import json

from dgxcheck.facts.missing import Json
from dgxcheck.output.plain_text import visible
from dgxcheck.watch.event import ReportedEvent, as_json

SCHEMA = "dgxcheck/watch/1"
_ACTION = {"pass": "info"}


def json_line(reported: ReportedEvent) -> str:
    """One object in one line."""
    members: dict[str, Json] = {"schema": SCHEMA, **as_json(reported)}
    return json.dumps({name: visible(value) if isinstance(value, str) else value for name, value in members.items()})


def text_line(reported: ReportedEvent) -> str:
    """``2026-11-22T10:00:00Z  FAIL  0000:0a:00.0  Xid 79 (GPU has fallen off the bus)``"""
    when = reported.date or f"[{reported.event.seconds or 0.0:12.6f}]"
    return f"{when}  {described(reported)}"


def described(reported: ReportedEvent) -> str:
    """The same without its date."""
    event = reported.event
    again = ""
    if reported.total > event.count:
        again = f" ({event.count} more, {reported.total} in all)"
    elif event.count > 1:
        again = f" ({event.count} times)"
    return visible("  ".join(filter(None, (level(event.status.value), event.bdf, f"{event.text}{again}"))))


def level(status: str) -> str:
    """``FAIL``; ``INFO`` for what is no trouble. Four letters wide."""
    return _ACTION.get(status, status).upper().ljust(4)
