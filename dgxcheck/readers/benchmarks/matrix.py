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
    """A table, possibly truncated."""

    corner: str
    """``D\\D``, ``GPU`` (time by the GPU's clock), ``CPU`` (time that the calls took)."""
    heading: int
    """The number of the line, from 0, that names the columns."""
    columns: tuple[int, ...]
    rows: tuple[tuple[int, int, tuple[str, ...]], ...]
    """Number of the line, the row's GPU, its words; fewer than columns where the line was cut."""

    def cells(self, value: Callable[[str], V | None]) -> tuple[list[tuple[int, int, V, int]], set[int]]:
        """Row, column, value and line of every cell that ``value`` can read, and the lines where it read them all."""
        cells: list[tuple[int, int, V, int]] = []
        lines = {self.heading}
        for at, row, words in self.rows:
            values = [(column, value(word)) for column, word in zip(self.columns, words, strict=False)]
            readable = [(row, column, cell_value, at) for column, cell_value in values if cell_value is not None]
            cells += readable
            if len(readable) == len(self.columns):
                lines.add(at)
        return cells, lines


def two_places(most: float) -> Callable[[str], float | None]:
    """A reader of cells printed with two decimals, as ``%6.02f`` does.

    A number with fewer decimals at the end of a cut file lost digits, before the point too for all one can tell.
    """
    return lambda word: number(word, most) if TWO_PLACES.fullmatch(word) else None


def matrices(lines: tuple[str, ...], corners: tuple[str, ...]) -> dict[int, Matrix]:
    """All tables whose first word is one of ``corners``, by the number of the line that it stands in."""
    tables: dict[int, Matrix] = {}
    for start, line in enumerate(lines):
        words = bare(line).split()
        if words and words[0] in corners and (columns := indexes(words[1:])):
            tables[start] = Matrix(
                corner=words[0], heading=start, columns=columns, rows=rows(lines, start, columns, columns)
            )
    return tables


def indexes(words: list[str]) -> tuple[int, ...]:
    """The GPUs that head the columns; none where one is no index or comes twice."""
    columns = tuple(index for word in words if (index := gpu(word)) is not None)
    return columns if len(columns) == len(words) == len(set(columns)) else ()


def rows(
    lines: tuple[str, ...], start: int, columns: tuple[int, ...], expected: tuple[int, ...]
) -> tuple[tuple[int, int, tuple[str, ...]], ...]:
    """The rows below a heading, until one that is none or comes twice. A row with too many cells is no row."""
    table_rows: list[tuple[int, int, tuple[str, ...]]] = []
    gpus: set[int] = set()
    for at in range(start + 1, min(start + 1 + len(expected), len(lines))):
        words = bare(lines[at]).split()
        row = gpu(words[0]) if words else None
        if row is None or row not in expected or row in gpus or len(words) > 1 + len(columns):
            break
        gpus.add(row)
        table_rows.append((at, row, tuple(words[1:])))
    return tuple(table_rows)
