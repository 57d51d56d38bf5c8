"""Tables of words beside the readers: how a tool says something, and what it stands for.

Rows are tried in their order; what one leaves empty does not apply to it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import cast

from dgxcheck import package_files
from dgxcheck.facts.faults import BY_WORD
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.model import HOST, Imported, ToolPart


class Wording(Record, kw_only=False):
    """Words of a tool, and what they stand for."""

    words: LazyPattern
    outcome: Outcome = "warn"
    fault: FaultKind | None = None
    topic: str = ""
    text: str = ""
    """For people; may name groups of ``words``."""
    tool: str = ""
    """Whose words they are, in a table of several tools."""


def rows(table: str, of: str = "") -> Iterator[dict[str, str]]:
    """The rows of ``ROOM/NAME.tsv``, or those whose first cell is ``of``."""
    return package_files.table(f"readers/{table}.tsv", of)


def wordings(table: str, tool: str = "") -> tuple[Wording, ...]:
    """The rows of a table, or those of one tool in it, as what they stand for."""
    return tuple(map(wording, rows(table, tool)))


def is_entered(part: ToolPart, known: Iterable[Wording], number: int, line: str) -> bool:
    """Does a line hold words of one of these? What the first such stands for is then a result of the host."""
    for row in known:
        if match := row.words.search(line):
            part.add(HOST, row.topic, row.outcome, row.fault, row.text.format(**match.groupdict("")))
            part.lines.add(number)
            return True
    return False


def results(
    tool: str, known: Sequence[Wording], lines: Iterable[tuple[int, str]], beside: LazyPattern
) -> tuple[Imported, ...]:
    """One of each line that holds words of these; ``beside``: of what is no sign of the tool."""
    part = ToolPart(tool)
    for number, line in lines:
        if not is_entered(part, known, number, line) and beside.fullmatch(line):
            part.beside.add(number)
    return part.imported()


def wording(row: dict[str, str]) -> Wording:
    topic, text, tool = row.get("topic", ""), row.get("text", ""), row.get("tool", "")
    return Wording(LazyPattern(row["words"]), outcome_of(row), fault_of(row), topic, text, tool)


def outcome_of(row: dict[str, str]) -> Outcome:
    """A warning in a table without that column."""
    return cast(Outcome, row.get("outcome", "warn"))


def fault_of(row: dict[str, str], column: str = "fault") -> FaultKind | None:
    return BY_WORD[row[column]] if row.get(column) else None


def forms(table: str, of: str) -> tuple[LazyPattern, ...]:
    """Forms of a line of a tool in several of its versions, each with groups of the same names."""
    return tuple(map(LazyPattern, words_of(table, of)))


_PART = LazyPattern(r"\{[A-Z]+\}")


def matched(known: Iterable[LazyPattern], line: str) -> re.Match[str] | None:
    """What the first of these forms finds in a line that has it."""
    return next((match for form in known if (match := form.fullmatch(line))), None)


@cache
def _lines(table: str) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for row in rows(table):
        words = _PART.sub(lambda part: found[part[0]][0], row["words"])
        found.setdefault(row["of"], []).append(words)
    return found


def words_of(table: str, of: str) -> list[str]:
    """The rows themselves: names of one kind."""
    return _lines(table)[of]


def any_of(table: str, of: str) -> str:
    """The expression that matches what matches one of the rows: lines of a tool that all mean the same, or nothing.

    A row of ``{NAME}`` is a part of rows below it that hold its name.
    """
    return "|".join(words_of(table, of))
