"""Measurements as tables, heat maps and bars of a terminal, by the share of what was expected.

A percentage is coloured by its value (``output/color.py``), so that nothing is lost where there is no colour.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.finding import BAD, Status
from dgxcheck.checks.measurement.lookup import is_rdma, kind_label
from dgxcheck.facts.measurement import WITHHELD, NotMeasured, of_ranks
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.typical import gathered, median
from dgxcheck.output.plain_text import columns, fit_columns, visible, wording
from dgxcheck.readiness.figures import Figure
from dgxcheck.topology.model import Topology

LOW = 0.9
"""Below this share a figure is shown with its percentage."""
_FEWEST = 4
"""Pairs that are joined alike; of fewer the median says little."""
_LESS_IS_BETTER = ("latency", "latency-off", "latency-sm")


def share(figure: Figure) -> float | None:
    """1 for all of it; None where nothing is expected or nothing was measured. Of a latency the inverse."""
    number, expected = figure.row.number, figure.expected
    if number is None or not expected or number < 0:
        return None
    if figure.row.kind in _LESS_IS_BETTER:
        return expected / number if number else None
    return number / expected


def alike(figures: Sequence[Figure], topology: Topology) -> Mapping[tuple[str, str, str], float]:
    """Of pairs without an expected figure the share of the median of those that are joined alike, by kind and ends."""
    groups: dict[tuple[str, str], list[Figure]] = {}
    devices = {device.name: device for device in topology.gpus}
    for figure in figures:
        a, b = devices.get(figure.a), devices.get(figure.b)
        if a is not None and b is not None and a is not b and figure.expected is None and figure.row.number:
            groups.setdefault((figure.row.kind, topology.link(a, b).label), []).append(figure)
    found = {}
    for (kind, _), same in groups.items():
        if len(same) >= _FEWEST:
            usual = median(figure.row.number or 0.0 for figure in same)
            for figure in same:
                number = figure.row.number or usual
                found[kind, figure.a, figure.b] = usual / number if kind in _LESS_IS_BETTER else number / usual
    return found


def percent_of(of: float) -> str:
    """``51%``"""
    return f"{100 * of:.0f}%"


FiguresByPair = Mapping[tuple[str, str], Figure]
_LEAST, _WHOLE = 8, 24
"""Characters of a bar of 100 %."""


def gpu_names(cells: FiguresByPair) -> list[str]:
    """The GPUs of a matrix in their order."""
    return sorted({name for pair in cells for name in pair}, key=lambda name: (len(name), name))


def shares(cells: FiguresByPair, width: int) -> list[str]:
    """The share of each pair, where one is low; else nothing, for a matrix of 100 % says nothing."""
    parts = {pair: part for pair, figure in cells.items() if pair[0] != pair[1] and (part := share(figure)) is not None}
    if not parts or min(parts.values()) >= LOW:
        return []
    found = gpu_names(cells)
    body = [right([visible(b), *(percent_of(parts[a, b]) if (a, b) in parts else "-" for a in found)]) for b in found]
    return ["  of what each path should carry:", *fit_columns(["", *map(visible, found)], body, [], width)[0], ""]


def bars(figures: Sequence[Figure], width: int) -> list[str]:
    """The lowest figure of each kind as a bar against what is expected of it."""
    parts = ((share(figure), figure) for figure in figures if figure.row.unit != "words")
    by_kind = gathered(((figure.row.kind, figure.source), (part, figure)) for part, figure in parts if part is not None)
    lowest = [min(each, key=lambda one: one[0]) for each in by_kind.values()]
    if not lowest:
        return []
    lines = columns([_words(figure) for _, figure in lowest])
    room = max(_LEAST, min(_WHOLE, width - max(map(len, lines)) - 10))
    rows = [(line, _bar(*each, room)) for line, each in zip(lines, lowest, strict=True)]
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


WIDTH = 80
MARKS = {Status.FAIL: "!", Status.UNKNOWN: "!", Status.WARN: "*"}
LEGEND = (
    {"!": "wrong or far below what is expected", "*": "below what is expected"},
    {"-": "not measured", "x": "not offered by the driver"},
)
"""By line."""
_SIGN = re.compile(r"(?<=[\w?])[!*](?= |$)|(?<= )[-x](?= |$)", re.MULTILINE)
"""Of a cell: a mark behind a figure or a word, or a sign alone."""
OF_A_GPU = wording("figure of a GPU")
"""Columns of the first table, by kind."""
OF_A_PAIR = wording("matrix")
"""Titles of the matrices, by kind."""
_BOTH_WAYS = ("p2p-both", "p2p-off-both")


def of_gpus(figures: Sequence[Figure]) -> tuple[dict[tuple[str, str], Figure], list[str], list[str]]:
    """The figures of single GPUs by kind and name; the kinds that were measured; the names."""
    by = {(figure.row.kind, figure.a): figure for figure in figures if figure.row.kind in OF_A_GPU}
    measured = {kind for kind, _ in by}
    return by, [kind for kind in OF_A_GPU if kind in measured], list(dict.fromkeys(name for _, name in by))


def of_pairs(figures: Sequence[Figure], kind: str) -> dict[tuple[str, str], Figure]:
    """By the two ends; of a copy both ways at once in either order."""
    cells = {(figure.a, figure.b): figure for figure in figures if figure.row.kind == kind}
    return {(b, a): each for (a, b), each in cells.items()} | cells if kind in _BOTH_WAYS else cells


def tables(figures: Sequence[Figure]) -> list[str]:
    """All tables, with an empty line below each; nothing where nothing was measured."""
    lines = _gpus(figures)
    denied = {(figure.a, figure.b) for figure in figures if figure.row.kind == "access" and figure.row.value is False}
    for kind, title in OF_A_PAIR.items():
        cells = of_pairs(figures, kind)
        if any(a != b for a, b in cells):
            lines += [f"{title}:", *_matrix(cells, denied), "", *shares(cells, WIDTH)]
    others = [_of_all(each) for each in figures if each.row.kind in ("collective", "ring") or is_rdma(each.row.kind)]
    lines += [*others, *([""] if others else [])]
    simulated = any(figure.row.how == "simulated" for figure in figures)
    notes = ["Simulated: no GPU gave these figures."] if simulated else []
    return [*lines, *bars(figures, WIDTH), *legend("\n".join(lines)), *notes, ""] if lines else []


def legend(table: str) -> list[str]:
    """What the signs mean that a table shows."""
    shown = {*_SIGN.findall(table)}
    rows = [", ".join(f"{sign} {meaning}" for sign, meaning in line.items() if sign in shown) for line in LEGEND]
    return [row for row in rows if row]


def _of_all(figure: Figure) -> str:
    """Traffic of all GPUs or of an HCA, as one line."""
    row = figure.row
    if is_rdma(row.kind):
        memory = row.more.get("memory")
        where = "" if memory is None else f" (memory of GPU {memory})"
        return f"{kind_label(row.kind)} at {visible(row.a)}{where}: {_with_unit(figure)}"
    what = f"Copies around ring {row.a}" if row.kind == "ring" else of_ranks(row)
    return f"{visible(what)}: {_with_unit(figure)}"


def _with_unit(figure: Figure) -> str:
    """``24.21! GB/s``, or why there is no figure."""
    value = figure.row.value
    if isinstance(value, NotMeasured) and value.reason != "failed":
        return f"no figure ({visible(value.detail)})" if value.detail else "no figure"
    return f"{figure_text(figure)} {visible(figure.row.unit)}"


def _gpus(figures: Sequence[Figure]) -> list[str]:
    """A row for each GPU."""
    alone, kinds, names = of_gpus(figures)
    body = []
    for kind in kinds:
        head, _, unit = OF_A_GPU[kind].partition(", ")
        cells = [_cell(found) if (found := alone.get((kind, name))) else "- " for name in names]
        body.append(right([f"{head} ", f"{unit} ", *cells]))
    return [*fit_columns(["", "", *map(visible, names)], body, [], WIDTH)[0], ""] if body else []


def _matrix(cells: FiguresByPair, denied: set[tuple[str, str]]) -> list[str]:
    gpus = gpu_names(cells)
    body = []
    for b in gpus:
        column = [_cell(cells[a, b]) if (a, b) in cells else "x " if (a, b) in denied else "- " for a in gpus]
        body.append(right([f"{visible(b)} ", *column]))
    return fit_columns(["", *map(visible, gpus)], body, [], WIDTH)[0]


def figure_text(figure: Figure) -> str:
    """``24.21!``, without blanks: see ``LEGEND``."""
    return _cell(figure).strip()


def _cell(figure: Figure) -> str:
    """The figure and its mark, or in a word why there is none."""
    value = figure.row.value
    mark = MARKS.get(figure.verdict, " ") if figure.verdict is not None else " "
    if isinstance(value, Missing):
        return f"hung{mark}" if value.gap is Gap.TIMEOUT else "- " if value.gap is Gap.UNRECORDED else f"?{mark}"
    if isinstance(value, NotMeasured):
        wrong = value.failure == WITHHELD
        return "wrong!" if wrong else f"failed{mark}" if value.reason == "failed" else "skip "
    number = figure.row.number
    if number is None:
        return "- "
    whole = figure.row.unit == "words" or abs(number) >= 100000
    return f"{number:.0f}{mark}" if whole else f"{number:.{2 if abs(number) < 1000 else 1}f}{mark}"
