"""The table of the watch on a terminal: what was counted by device, and the last events."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.output.plain_text import columns, lines, visible
from dgxcheck.output.watch.lines import level
from dgxcheck.watch.fold import Tally
from dgxcheck.watch.memory import Memory

_LEAST_EVENTS = 5
_UNCOUNTED = ("finding", "cleared", "verdict", "note")


def render(known: Memory, date: str, width: int, height: int) -> str:
    """As many lines as the terminal has, none longer than it is wide."""
    verdict = known.judged.verdict or "not judged yet"
    lost = f"; {known.lost} log records lost" if known.lost else ""
    head = [f"dgxcheck watch  {date}  verdict: {verdict}{lost}", ""]
    counted = _counted(known.ledger.tallies.values())
    bad = [f"{level(each.status)} {key}: {each.text}" for key, each in known.judged.findings.items()]
    room = max(0, height - len(head) - _LEAST_EVENTS - 4)
    body = [*_block("Counts", counted, room), *_block("Findings", bad, max(0, room - len(counted)))]
    left = max(1, height - len(head) - len(body) - 3)
    events = [
        f"{str(each.get('at'))[11:19]} {level(str(each.get('status')))} {each.get('bdf') or '-'}  {each.get('text')}"
        for each in list(known.ledger.recent)[-left:]
    ]
    body += ["Last events", *(events or ["  none"])]
    return lines(_cut(visible(each), width) for each in [*head, *body][: max(1, height - 1)])


def _counted(tallies: Iterable[Tally]) -> list[str]:
    rows = [
        (level(each.worst.value), each.event.bdf or "-", each.event.kind, each.event.code or "-", str(each.count),
         each.last)
        for each in sorted(tallies, key=lambda tally: tally.last, reverse=True)
        if each.event.kind not in _UNCOUNTED
    ]  # fmt: skip
    return columns([("", "device", "event", "code", "count", "last"), *rows]) if rows else []


def _block(title: str, rows: list[str], room: int) -> list[str]:
    if not rows:
        return []
    shown = rows[:room]
    more = [f"  and {len(rows) - len(shown)} more"] if len(shown) < len(rows) else []
    return [title, *shown, *more, ""]


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: max(0, width - 1)]}…"
