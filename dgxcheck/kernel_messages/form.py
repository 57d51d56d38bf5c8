"""A form of a message: the literal that it holds, and patterns of what stands before and after that.

Those of one subject are a table, ``SUBJECT.tsv``, a row each: before, literal, after, what such a message means, and
the names under which code asks for it. A row without a literal is a part of patterns, ``{NAME}`` in rows below it, and
what it stands for; ``{BDF}`` is a bus id, ``{DEVICE}`` what ``dev_printk`` puts before a message: driver and bus id.
Several subjects share ``silent.tsv``, each with the drivers whose devices are its own: ``{HELD_BY}``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import cast

from dgxcheck.facts.kernel_log import HostEvent, HostTrouble
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.package_files import table

Lines = Sequence[tuple[float, str]]
"""Seconds and message of each."""
BDF = r"(?:[1-9a-f][0-9a-f]{4,7}|[0-9a-f]{4}):[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"
"""The name of a PCI function, exactly: what matches needs no further look."""
_PARTS = {"BDF": BDF, "DEVICE": rf"[^\s:]{{1,64}} (?P<bdf>{BDF}): "}
_PART = re.compile(r"\{([A-Z_]+)\}")


class Form(LazyPattern):
    """Matches from the start of a message. What is kept of a log follows from all of these (``forms.py``)."""

    def __init__(self, before: str, literal: str, after: str, names: Sequence[str]) -> None:
        """``forgeable``: a user can choose so much of it that such a message proves nothing about the ones after it.

        ``context``: nobody reads facts from it, but it explains those around it.
        """
        super().__init__(f"{before}{re.escape(literal)}{after}", literal, flags=re.DOTALL | re.ASCII)
        varies = before and (not before[0].isalnum() or before[1:2] in ("?", "*", "{"))
        self.starts = "" if varies else (before or literal)[0]
        """Its first character; empty where that varies."""
        self.context = "context" in names
        self.forgeable = self.context or "forgeable" in names


class Forms:
    """The table of one subject, and rows that it shares with others, filled with parts of its own."""

    def __init__(self, subject: str, *shared: str) -> None:
        self.parts = dict(_PARTS)
        self._meanings: dict[str, dict[Form, str]] = {}
        for row in (row for name in (subject, *shared) for row in table(f"kernel_messages/{name}.tsv")):
            if not row["literal"]:
                self.parts[row["before"].strip("{}")] = self._filled(row["after"])
                continue
            names = row["names"].split(", ")
            form = Form(self._filled(row["before"]), row["literal"], self._filled(row["after"]), names)
            for name in ("", *names):
                self._meanings.setdefault(name, {})[form] = row["meaning"]

    def _filled(self, pattern: str) -> str:
        return _PART.sub(lambda part: self.parts[part[1]], pattern)

    def __iter__(self) -> Iterator[Form]:
        return iter(self._meanings[""])

    def __getitem__(self, name: str) -> Mapping[Form, str]:
        """What the forms of this name mean, in their order."""
        return self._meanings[name]

    def match(self, name: str, message: str) -> re.Match[str] | None:
        """The match of the first form of this name that a message has."""
        found = self.found(name, message)
        return found and found[0]

    def matches(self, name: str, lines: Lines) -> Iterator[tuple[int, re.Match[str]]]:
        """Those of all lines, with the number of the line."""
        found = ((number, self.match(name, message)) for number, (_, message) in enumerate(lines))
        return ((number, match) for number, match in found if match is not None)

    def bdf(self, name: str, message: str) -> str | None:
        """The PCI function of that match."""
        found = self.found(name, message)
        return found and found[0]["bdf"]

    def found(self, name: str, message: str) -> tuple[re.Match[str], str] | None:
        """That match, with what it means."""
        for form, meaning in self._meanings[name].items():
            if (match := form.match(message)) is not None:
                return match, meaning
        return None

    def event(self, seconds: float, message: str) -> HostEvent | None:
        """Trouble of the host, where a message has a form of the name ``event``: its meaning, and of which ``part`` and
        ``group`` it is, as the meaning says after ``: `` or groups of the pattern."""
        if (found := self.found("event", message)) is None:
            return None
        (trouble, _, part), parts = found[1].partition(": "), found[0].groupdict("")
        part = part or parts.get("part", "")
        return host_event(cast(HostTrouble, trouble), part, seconds, message, parts.get("group", ""))


def host_event(
    trouble: HostTrouble, part: str, seconds: float, line: str, group: str = "", corrected: bool | None = None,
    past: bool = False,
) -> HostEvent:
    """One event of one line."""
    return HostEvent(
        trouble=trouble, part=part, group=group, corrected=corrected, seconds=seconds, line=line, past=past
    )  # fmt: skip


def blocks(
    lines: Lines, within_s: float, step: Callable[[HostEvent | None, float, str], HostEvent | None]
) -> Iterator[HostEvent]:
    """Events that a heading opens and the lines after it within so many seconds add to.

    ``step`` has the event that is open, seconds and message, and gives the one that is open then: the same with what
    the message adds, another one where it is a heading itself, None where it shows that there is none.
    """
    event: HostEvent | None = None
    for seconds, message in lines:
        if event is not None and seconds - event.seconds > within_s:
            yield event
            event = None
        before, event = event, step(event, seconds, message)
        if before is not None and event is not None and (event.seconds, event.line) != (before.seconds, before.line):
            yield before
    if event is not None:
        yield event
