"""Outputs that are recognised and hold no fact of a check, by how they begin and what their rows look like."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.facts.record import Record
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded

_MOST_ABOVE = 8


class Form(Record, kw_only=False):
    """How an output begins, and what its lines look like until another one comes."""

    tool: str
    head: re.Pattern[str]
    row: re.Pattern[str]
    ends: bool = True
    """At an empty line."""
    instead: str = ""
    """A command that says more of the machine."""


def recognised(lines: tuple[str, ...], forms: Sequence[Form]) -> tuple[Imported, ...]:
    """Which lines are theirs, without facts."""
    found: dict[str, set[int]] = {}
    form: Form | None = None
    lines = bounded(lines)
    for number, line in enumerate(lines):
        text = line.strip()
        if begun := next((each for each in forms if each.head.fullmatch(text)), None) if text else None:
            form = begun
            found.setdefault(_title(form), set()).update(_above(lines, number, form))
        elif form is None or not text or not form.row.fullmatch(text):
            form = form if form is not None and not text and not form.ends else None
            continue
        found.setdefault(_title(form), set()).add(number)
    return tuple(Imported(tool=title, facts={}, understood=frozenset(at)) for title, at in found.items())


def _above(lines: tuple[str, ...], head: int, form: Form) -> Iterator[int]:
    """Rows of the table that stand directly above its head: its upper rule."""
    for number in range(head - 1, max(head - _MOST_ABOVE, 0) - 1, -1):
        if not form.row.fullmatch(lines[number].strip()):
            return
        yield number


def _title(form: Form) -> str:
    return f"{form.tool} (not used; {form.instead} says more)" if form.instead else f"{form.tool} (not used)"
