"""What other tools found, as it was imported into a recording."""

from __future__ import annotations

from typing import get_args

from dgxcheck.facts.faults import BY_WORD, Fault
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.tool_report import Outcome, ToolReport
from dgxcheck.source.protocol import Source

KIND = "report"
_MOST_TEXT = 240
_OUTCOMES: dict[str, Outcome] = {outcome: outcome for outcome in get_args(Outcome)}


def probe(source: Source) -> tuple[ToolReport, ...] | Missing:
    """Everything under ``stated report SUBJECT TOPIC``; a result that is none of the known ones is left out."""
    facts = source.stated()
    if isinstance(facts, Missing):
        return facts
    found = [_report(key.split(" "), fact) for key, fact in sorted(facts.items()) if key.split(" ")[1:2] == [KIND]]
    return tuple(report for report in found if report is not None)


def _report(words: list[str], fact: Json) -> ToolReport | None:
    outcome = _OUTCOMES.get(str(fact.get("outcome"))) if isinstance(fact, dict) else None
    if outcome is None or not isinstance(fact, dict) or len(words) < 4:
        return None
    count, word, text = fact.get("count"), _text(fact, "fault"), _text(fact, "text")
    known = not word or word in BY_WORD
    return ToolReport(
        subject=words[2],
        tool=_text(fact, "tool"),
        topic=" ".join(words[3:]),
        outcome=outcome,
        fault=BY_WORD.get(word) if known else Fault.TEST_FAILED,
        text=text if known else f"unknown fault {word}: {text}"[:_MOST_TEXT],
        count=count if isinstance(count, int) and 0 < count < 10**9 else 1,
    )


def _text(fact: dict[str, Json], name: str) -> str:
    value = fact.get(name)
    return value[:_MOST_TEXT] if isinstance(value, str) else ""
