r"""Square tables of GPUs by GPUs: ``D\D  0  1`` above rows that begin with an index."""

from __future__ import annotations

import re

from dgxcheck.facts.record import Record
from dgxcheck.readers.values import bare, gpu, number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    V = TypeVar("V")

TWO_PLACES = re.compile(r"\d{1,12}\.\d\d", re.ASCII)


class Matrix(Record):
    """A table, or as much as is left of one."""

    corner: str
    """``D\\D``, ``GPU`` (time by the GPU's clock), ``CPU`` (time that the calls took)."""
    heading: int
    """The number of the line, from 0, that names the columns."""
    columns: tuple[int, ...]
    rows: tuple[tuple[int, int, tuple[str, ...]], ...]
    """Number of the line, the row's GPU, its words; fewer than columns where the line was cut."""

    def cells(self, value: Callable[[str], V | None]) -> tuple[list[tuple[int, int, V, int]], set[int]]:
        """Row, column, value and line of every cell that ``value`` can read, and the lines where it read them all."""
        found: list[tuple[int, int, V, int]] = []
        lines = {self.heading}
        for at, row, words in self.rows:
            values = [(column, value(word)) for column, word in zip(self.columns, words, strict=False)]
            good = [(row, column, one, at) for column, one in values if one is not None]
            found += good
            if len(good) == len(self.columns):
                lines.add(at)
        return found, lines


def two_places(most: float) -> Callable[[str], float | None]:
    """A reader of cells printed with two decimals, as ``%6.02f`` does.

    A number with fewer decimals at the end of a cut file lost digits, before the point too for all one can tell.
    """
    return lambda word: number(word, most) if TWO_PLACES.fullmatch(word) else None


def matrices(lines: tuple[str, ...], corners: tuple[str, ...]) -> dict[int, Matrix]:
    """All tables whose first word is one of ``corners``, by the number of the line that it stands in."""
    found: dict[int, Matrix] = {}
    for start, line in enumerate(lines):
        words = bare(line).split()
        if words and words[0] in corners and (columns := indexes(words[1:])):
            found[start] = Matrix(
                corner=words[0], heading=start, columns=columns, rows=rows(lines, start, columns, columns)
            )
    return found


def indexes(words: list[str]) -> tuple[int, ...]:
    """The GPUs that head the columns; none where one is no index or comes twice."""
    columns = tuple(index for word in words if (index := gpu(word)) is not None)
    return columns if len(columns) == len(words) == len(set(columns)) else ()


def rows(
    lines: tuple[str, ...], start: int, columns: tuple[int, ...], expected: tuple[int, ...]
) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """The rows below a heading, until one that is none or comes twice. A row with too many cells is no row."""
    found: list[tuple[int, int, tuple[str, ...]]] = []
    seen: set[int] = set()
    for at in range(start + 1, min(start + 1 + len(expected), len(lines))):
        words = bare(lines[at]).split()
        row = gpu(words[0]) if words else None
        if row is None or row not in expected or row in seen or len(words) > 1 + len(columns):
            break
        seen.add(row)
        found.append((at, row, tuple(words[1:])))
    return tuple(found)
