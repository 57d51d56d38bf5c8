"""``dcgmi health -c``: the table, of DCGM 1 on one line for each watch, and the same warnings in a log."""

from __future__ import annotations

import re
from collections.abc import Mapping

from dgxcheck.facts.missing import Json
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.dcgm.cells import cells, is_rule
from dgxcheck.readers.dcgm.faults import fault_of
from dgxcheck.readers.json_text import documents
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

TOOL = "dcgmi health"
_OUTCOMES: dict[str, Outcome] = {"warning": "warn", "warn": "warn", "failure": "fail", "fail": "fail"}
_OVERALL = re.compile(r"(?:Overall Health(?: ?: ?(?P<old>\w{1,10}))?)")
_GPU = re.compile(r"(?:-> ?|GPU ID: ?|gpuId ?)(?P<gpu>\d{1,3})")
_WATCH = re.compile(r"(?:-> ?|(?P<gpu>\d{1,3}) - )?(?P<watch>[A-Z][\w/ -]{2,40}?) ?(?:system)?")
_STATUS = re.compile(r"(?P<word>Warning|Failure|Warn|Fail)\b(?: - )?(?P<text>.{0,1000})")
_LOGGED = re.compile(
    r".{0,200}Detected a (?P<word>WARNING|FAILURE) in health system (?P<watch>[\w ]{2,40}): '(?P<text>.{1,600})"
)
_GPU_KEY = re.compile(r"(?:GPU )?(?P<gpu>\d{1,2})")
_MOST_DEPTH = 8
"""Rows below each other; four are printed."""
_NAMED = re.compile(r"\bGPU ?(\d{1,2})(?!\d)")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Every watch that warns or fails; ``Overall Health | Healthy`` alone is a result without a fault."""
    lines = bounded(lines)
    reports = Reports(TOOL)
    understood: set[int] = set()
    inside, name = False, HOST
    for cell in cells(lines, 0, len(lines)):
        if overall := _OVERALL.fullmatch(cell.left):
            inside, name = True, HOST
            if (overall["old"] or cell.right).startswith("Healthy"):
                reports.add(HOST, "overall", "pass")
        elif not inside:
            continue
        elif match := _GPU.fullmatch(cell.left):
            name = f"GPU{int(match['gpu'])}"
        elif (watch := _WATCH.fullmatch(cell.left)) and (status := _STATUS.fullmatch(cell.parts[0].strip())):
            subject = f"GPU{int(watch['gpu'])}" if watch["gpu"] else name
            if text := cell.unwrapped([status["text"], *cell.parts[1:]]):
                _add(reports, subject, status["word"], watch["watch"], text)
        understood.update(cell.lines)
    for number, line in enumerate(lines):
        if logged := _LOGGED.fullmatch(line.strip()) if "in health system" in line else None:
            named = _NAMED.findall(logged["text"])
            _add(reports, f"GPU{int(named[0])}" if named else HOST, logged["word"], logged["watch"], logged["text"])
            understood.add(number)
    understood |= _json(reports, lines)
    if not reports:
        return ()
    frame = {n for n in range(max(min(understood) - 4, 0), min(max(understood) + 2, len(lines)))
             if is_rule(lines[n]) or lines[n].strip(" |") in ("Health Monitor Report", "Errors")}  # fmt: skip
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood | frame)),)


def _json(reports: Reports, lines: tuple[str, ...]) -> set[int]:
    """``-j``: the tree of the table, each row an object with ``value`` and ``children``."""
    understood: set[int] = set()
    for found, where in documents(lines, lambda each: _overall(each) is not None):
        if (_overall(found) or "").startswith("Healthy"):
            reports.add(HOST, "overall", "pass")
        body = found["body"]
        for name, row in body.items() if isinstance(body, dict) else ():
            _row(reports, HOST, "", name, row, 0)
        understood.update(where)
    return understood


def _overall(found: Mapping[str, Json]) -> str | None:
    """``Healthy``, ``Warning`` ..; None for another document."""
    body = found.get("body")
    overall = body.get("Overall Health") if isinstance(body, dict) else None
    return str(overall.get("value", "")) if isinstance(overall, dict) else None


def _row(reports: Reports, subject: str, watch: str, name: str, row: Json, depth: int) -> None:
    """A GPU, one of its watches, or what that found: a text below ``Warning`` or ``Failure``."""
    if not isinstance(row, dict) or depth > _MOST_DEPTH:
        return
    value, below = row.get("value"), row.get("children")
    if gpu := _GPU.fullmatch(name) or _GPU_KEY.fullmatch(name):
        subject = f"GPU{int(gpu['gpu'])}"
    elif name.lower() in _OUTCOMES:
        for text in [value, *(below if isinstance(below, dict) else {})]:
            if isinstance(text, str) and watch:
                _add(reports, subject, name, watch, text)
        return
    elif isinstance(value, str) and (status := _STATUS.fullmatch(value)) and status["text"]:
        _add(reports, subject, status["word"], name, status["text"])
    for each, inner in (below if isinstance(below, dict) else {}).items():
        _row(reports, subject, name, each, inner, depth + 1)


def _add(reports: Reports, subject: str, word: str, watch: str, text: str) -> None:
    topic = re.sub(r"[^a-z0-9]+", "-", watch.lower()).strip("-") or "watch"
    reports.add(subject, topic, _OUTCOMES[word.lower()], fault_of(text), text.rstrip("' ."))
