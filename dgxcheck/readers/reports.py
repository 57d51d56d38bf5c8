"""Collects what a tool found wrong as facts ``stated report SUBJECT TOPIC``, equal ones counted."""

from __future__ import annotations

from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json
from dgxcheck.facts.tool_report import Outcome

HOST = "host"
REPORT = "stated report "
"""Begins the key of a result."""
MOST = 256
"""Different results of one text; a box has some hundred."""
_MOST_TEXT = 200


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

    def add(
        self, subject: str, topic: str, outcome: Outcome, fault: FaultKind | None = None, text: str = ""
    ) -> None:
        """One result; no fault for one that is good."""
        key = (subject, topic, outcome, fault, " ".join(text.split())[:_MOST_TEXT])
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


def add_report(facts: dict[str, Json], key: str, result: Json) -> None:
    """A result beside others on the same topic of the same subject; the same one again is counted."""
    base, number = key, 2
    while (before := facts.get(key)) is not None:
        if isinstance(before, dict) and isinstance(result, dict) and _without_count(before) == _without_count(result):
            facts[key] = {**before, "count": _count(before) + _count(result)}
            return
        key, number = f"{base}-{number}", number + 1
    facts[key] = result


def _without_count(result: dict[str, Json]) -> dict[str, Json]:
    return {name: member for name, member in result.items() if name != "count"}


def _count(result: dict[str, Json]) -> int:
    count = result.get("count")
    return count if isinstance(count, int) else 1
