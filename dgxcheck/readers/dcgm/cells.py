"""The two columns of dcgmi's tables: wrapped cells put together again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern

_ROW = LazyPattern(r"\|(?P<left>[^|]{0,80})\|(?P<right>[^|]{0,400})(?P<closed>\|?)")
_RULE = LazyPattern(r"[+|][-=+\s]{6,200}[+|]?|[+|]-{2,12}\s{1,3}[A-Z][\w ]{2,30}\s{1,3}-{2,20}\+?-{0,100}[+|]")

_END = "."
"""A line that is of no table."""
_MARGINS = 3
"""Blanks that a full row of the right column leaves: one before it, two behind it."""


class DiagCell(Record):
    """One row of the table, with the lines that it was wrapped over."""

    left: str
    parts: tuple[str, ...]
    """Of the right column by line; the first blank of each is the table's."""
    lines: tuple[int, ...]
    width: int
    """Characters of a full row of the right column; 0 where no row shows its end."""

    @property
    def right(self) -> str:
        """The text as it was before it was wrapped."""
        return self.unwrapped(self.parts)

    def unwrapped(self, parts: Sequence[str]) -> str:
        """Some of the parts as one text: a full row may end in a word, a shorter one ends at a blank."""
        width = self.width or max(map(len, parts), default=0)
        text = "".join(part if len(part) >= width else f"{part} " for part in parts)
        return " ".join(text.split())


def is_rule(line: str) -> bool:
    """A line between rows, with or without a heading in it."""
    return _RULE.fullmatch(line.strip()) is not None


def frame(lines: Sequence[str], rows: Collection[int], above: int, is_own: Callable[[str], bool]) -> set[int]:
    """Rules around the rows, and other lines that are the table's; ``above``: so many lines before the first row."""
    around = range(max(min(rows) - above, 0), min(max(rows) + 2, len(lines))) if rows else ()
    return {n for n in around if is_rule(lines[n]) or is_own(lines[n].strip())}


def cells(lines: Sequence[str]) -> Iterator[DiagCell]:
    """The rows of a table; one with an empty left column goes on with the one before it."""
    left = ""
    width = 0
    parts: list[str] = []
    numbers: list[int] = []
    for number, line in enumerate((*lines, _END)):
        if left and not line.strip():
            continue
        row = None if is_rule(line) else _ROW.fullmatch(line.strip())
        begins = row["left"].strip() if row else ""
        width = max(width, len(row["right"]) - _MARGINS) if row and row["closed"] else width
        if left and (begins or row is None):
            yield DiagCell(left=left, parts=tuple(parts), lines=tuple(numbers), width=width)
            left, parts, numbers = "", [], []
        left = begins or left
        if row and left:
            parts.append(row["right"][1:].rstrip())
            numbers.append(number)
