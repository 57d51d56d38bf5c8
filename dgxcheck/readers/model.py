"""The result of a reader of another tool's output: facts, and what the tool found wrong."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json, members_of
from dgxcheck.facts.record import Record
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern

Reader: TypeAlias = "Callable[[tuple[str, ...]], tuple[Imported, ...]]"


class Imported(Record):
    """One tool's part of a text, which may contain outputs of several tools, truncated, in any order."""

    tool: str
    """With its version if the output has it: ``nvbandwidth v0.8``, ``p2pBandwidthLatencyTest``."""
    facts: Mapping[str, Json]
    """By key, as in a recording: ``measure KIND A [B]`` with the tool's own decimal indexes as subjects, or
    ``nvml FUNCTION BDF ..`` where the output has bus ids."""
    understood: frozenset[int]
    """Line numbers, from 0, of all lines that the reader recognises: data, headings, separators, status messages."""
    host: str = ""
    """Whose lines they are, where an output that several hosts write into names the writer."""


HOST = "host"
REPORT = "stated report "
"""Begins the key of a result."""
MOST = 256
"""Different results of one text; a box has some hundred."""
_MOST_TEXT = 200


def topic_of(words: str, otherwise: str = "test") -> str:
    """``memory-bandwidth`` of ``Memory Bandwidth``."""
    return re.sub(r"[^a-z0-9]+", "-", words.lower()).strip("-") or otherwise


class Reports:
    """The results of one tool in one text."""

    def __init__(self, prefix: str) -> None:
        self.tool = prefix
        """With its version once that is known."""
        self._prefix = prefix.replace(" ", "-")
        self._found: dict[tuple[str, str, Outcome, FaultKind | None, str], int] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def has_fault(self, kind: FaultKind) -> bool:
        """Is there a result with this fault?"""
        return any(fault is kind for _, _, _, fault, _ in self._found)

    def add(self, subject: str, topic: str, outcome: Outcome, fault: FaultKind | None = None, text: str = "") -> None:
        """One result; no fault for one that is good."""
        words = " ".join(text.split())
        words = words if len(words) <= _MOST_TEXT else f"{words[: _MOST_TEXT - 3].rstrip(',;: ')} .."
        key = (subject, topic, outcome, fault, words)
        if key in self._found or len(self._found) < MOST:
            self._found[key] = self._found.get(key, 0) + 1

    def facts(self) -> dict[str, Json]:
        """By key; several texts on one topic of one subject are numbered."""
        facts: dict[str, Json] = {}
        for (subject, topic, outcome, fault, text), count in self._found.items():
            word = fault.word if fault else ""
            result: Json = {"tool": self.tool, "outcome": outcome, "fault": word, "text": text, "count": count}
            add_report(facts, f"{REPORT}{subject} {self._prefix}-{topic}", result)
        return facts


class ToolPart(Reports):
    """What a reader makes of one tool's part of a text, line by line."""

    def __init__(self, tool: str) -> None:
        super().__init__(tool)
        self.found: dict[str, Json] = {}
        """Facts other than results."""
        self.lines: set[int] = set()
        """Numbers of those that it understands."""
        self.beside: set[int] = set()
        """Of lines that alone are no sign of the tool."""

    def matches(
        self, form: LazyPattern, lines: Iterable[tuple[int, str]], beside: LazyPattern | None = None
    ) -> Iterator[re.Match[str]]:
        """Of each line of this form, which it understands; ``beside``: of what is no sign of the tool."""
        for number, line in lines:
            if match := form.fullmatch(line):
                self.lines.add(number)
                yield match
            elif beside is not None and beside.fullmatch(line):
                self.beside.add(number)

    def imported(self, more: Mapping[str, Json] = {}, sound: str = "") -> tuple[Imported, ...]:
        """With ``more`` facts; nothing where it understands no line.

        ``sound``: the topic of a result without a fault, where nothing was found wrong.
        """
        if sound and self.lines and not self:
            self.add(HOST, sound, "pass")
        facts = {**self.found, **self.facts(), **more}
        understood = frozenset(self.lines | self.beside)
        return (Imported(tool=self.tool, facts=facts, understood=understood),) if self.lines else ()


def add_report(facts: dict[str, Json], key: str, result: Json) -> None:
    """A result beside others on the same topic of the same subject; the same one again is counted."""
    base, number = key, 2
    while before := members_of(facts.get(key)):
        if {**before, "count": 0} == {**members_of(result), "count": 0}:
            facts[key] = {**before, "count": _count(before) + _count(members_of(result))}
            return
        key, number = f"{base}-{number}", number + 1
    facts[key] = result


def has_faults(facts: Mapping[str, Json]) -> bool:
    """Did a tool find a fault?"""
    return any(members_of(fact).get("fault") for key, fact in facts.items() if key.startswith(REPORT))


def _count(result: Mapping[str, Json]) -> int:
    count = result.get("count")
    return count if isinstance(count, int) else 1
