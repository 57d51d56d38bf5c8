"""A verdict in one line for a scheduler: ``dgxcheck: ID SUBJECT FAULT FIGURE [ACTION]; ..; level LEVEL``.

Slurm keeps the reasons of nodes in a column of 255 bytes (``tinytext`` of ``event_table`` in its plug-in
accounting_storage/mysql), and scontrol is given the text: so it is short, and ASCII without quotes, ``=`` and ``|``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.faults import BY_WORD
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered

PREFIX = "dgxcheck: "
BOUND = 250
"""Bytes."""
_NOT_A_WORD = re.compile(r"[^A-Za-z0-9.,:@/+_-]+")
_NOT_A_FIGURE = re.compile(r"[^A-Za-z0-9.,:@/+_ %-]+")
_LONGEST_WORD = 60


class Item(Record, kw_only=False):
    """One fault."""

    check: str
    subject: str
    fault: str
    figure: str
    """``x8 of x16``; empty for a fault without a figure."""
    cause: str
    """Id of the component to blame; empty where there is none."""
    step: str
    """The first step that can help, of the catalogue of actions; empty where there is none."""


def drain_reason(verdict: str, level: str, items: Sequence[Item]) -> str:
    """At most BOUND bytes. Of a verdict other than ``fail`` the word stands in place of the faults.

    Each cause is named once, by its first fault: by the component where its faults have several subjects. Causes that
    do not fit are counted: ``2 more``.
    """
    if verdict != "fail":
        return _joined([verdict], level)
    texts = _texts(items) or ["fail"]
    for number in range(len(texts), 0, -1):
        left = [f"{len(texts) - number} more"] if number < len(texts) else []
        reason = _joined([*texts[:number], *left], level)
        if len(reason) <= BOUND:
            return reason
    return _joined([f"{len(texts)} more"], level)


def _joined(parts: Sequence[str], level: str) -> str:
    return f"{PREFIX}{'; '.join((*parts, f'level {level}'))}"


def _texts(items: Sequence[Item]) -> list[str]:
    causes = gathered((item.cause or f"{item.check} {item.subject}", item) for item in items)
    return [_text(_lead(alike), len({each.subject for each in alike}) > 1) for alike in causes.values()]


def _lead(alike: Sequence[Item]) -> Item:
    """The first; of heat or power the first that has a figure, as in the first line of ``health``."""
    first, fault = alike[0], BY_WORD.get(alike[0].fault)
    if first.figure or fault is None or fault.category != "environment":
        return first
    return next((each for each in alike if each.figure and each.subject == first.subject), first)


def _text(item: Item, several: bool) -> str:
    subject = item.cause if several else item.subject
    words = [_word(each) for each in (item.check, subject, item.fault or "unread")]
    figure = "" if several else _NOT_A_FIGURE.sub("", item.figure).strip()[:_LONGEST_WORD]
    action = f"[{_word(item.step).upper().replace('-', '_')}]" if item.step else ""
    return " ".join(filter(None, (*words, figure, action)))


def _word(text: str) -> str:
    """A name as one word, with ``_`` for blanks."""
    return _NOT_A_WORD.sub("_", text)[:_LONGEST_WORD].strip("_") or "_"
