"""Collects what a tool found wrong as facts ``stated report SUBJECT TOPIC``, equal ones counted."""

from __future__ import annotations

from dgxcheck.facts.missing import Json
from dgxcheck.facts.tool_report import Outcome

HOST = "host"
MOST = 256
"""Different results of one text; a box has some hundred."""
_MOST_TEXT = 200


class Reports:
    """The results of one tool in one text."""

    def __init__(self, prefix: str) -> None:
        self.tool = prefix
        """With its version once that is known."""
        self._prefix = prefix.replace(" ", "-")
        self._found: dict[tuple[str, str, Outcome, str, str], int] = {}

    def __bool__(self) -> bool:
        return bool(self._found)

    def has_fault(self, word: str) -> bool:
        """Is there a result with this fault?"""
        return any(fault == word for _, _, _, fault, _ in self._found)

    def add(self, subject: str, topic: str, outcome: Outcome, fault: str = "", text: str = "") -> None:
        """One result; ``fault`` is a word of ``checks/engine/fault.py``, empty for one that is good."""
        key = (subject, topic, outcome, fault, " ".join(text.split())[:_MOST_TEXT])
        if key in self._found or len(self._found) < MOST:
            self._found[key] = self._found.get(key, 0) + 1

    def facts(self) -> dict[str, Json]:
        """By key; several texts on one topic of one subject are numbered."""
        facts: dict[str, Json] = {}
        for (subject, topic, outcome, fault, text), count in self._found.items():
            base = key = f"stated report {subject} {self._prefix}-{topic}"
            number = 2
            while key in facts:
                key, number = f"{base}-{number}", number + 1
            facts[key] = {"tool": self.tool, "outcome": outcome, "fault": fault, "text": text, "count": count}
        return facts
