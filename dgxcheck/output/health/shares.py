"""How much of what was expected each figure reaches: heat maps and bars of a terminal.

A percentage is coloured by its value (``output/color.py``), so that nothing is lost where there is no colour.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.finding import BAD
from dgxcheck.output.health.share import LOW, percent_of, share
from dgxcheck.output.plain_text import columns, fit_columns, visible
from dgxcheck.readiness.figures import Figure

Cells = Mapping[tuple[str, str], Figure]
_LEAST, _WHOLE = 8, 24
"""Characters of a bar of 100 %."""


def names(cells: Cells) -> list[str]:
    """The GPUs of a matrix in their order."""
    return sorted({name for pair in cells for name in pair}, key=lambda name: (len(name), name))


def matrix(cells: Cells, width: int) -> list[str]:
    """The share of each pair, where one is low; else nothing, for a matrix of 100 % says nothing."""
    known = {pair: part for pair, figure in cells.items() if pair[0] != pair[1] and (part := share(figure)) is not None}
    if not known or min(known.values()) >= LOW:
        return []
    found = names(cells)
    body = [right([visible(b), *(percent_of(known[a, b]) if (a, b) in known else "-" for a in found)]) for b in found]
    return ["  of what each path should carry:", *fit_columns(["", *map(visible, found)], body, [], width)[0], ""]


def bars(figures: Sequence[Figure], width: int) -> list[str]:
    """The lowest figure of each kind as a bar against what is expected of it."""
    lowest: dict[tuple[str, str], tuple[float, Figure]] = {}
    for figure in figures:
        part = share(figure)
        if part is not None and figure.row.unit != "words":
            key = figure.row.kind, figure.source
            if key not in lowest or part < lowest[key][0]:
                lowest[key] = part, figure
    if not lowest:
        return []
    told = columns([_words(figure) for _, figure in lowest.values()])
    room = max(_LEAST, min(_WHOLE, width - max(map(len, told)) - 10))
    rows = [(line, _bar(*each, room)) for line, each in zip(told, lowest.values(), strict=True)]
    return ["Lowest of each kind against its reference:", *columns(rows), ""]


def _words(figure: Figure) -> Sequence[str]:
    """``host-to-device  GPU5  6.1 of 12 GB/s``"""
    row = figure.row
    who = visible(" - ".join(filter(None, (figure.a, figure.b))))
    return f"  {visible(row.kind)}", who, f"{row.number:.4g} of {figure.expected:.4g} {visible(row.unit)}"


def _bar(part: float, figure: Figure, room: int) -> str:
    filled = min(round(part * room), room)
    mark = "!" if figure.verdict in BAD else ""
    return f"{'#' * filled}{'.' * (room - filled)} {percent_of(part):>5}{mark}"


def right(column: Sequence[str]) -> list[str]:
    """Cells aligned at their right end."""
    width = max(map(len, column))
    return [cell.rjust(width) for cell in column]
