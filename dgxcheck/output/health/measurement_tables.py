"""What was measured, as tables: a row for each GPU, and matrices like those of p2pBandwidthLatencyTest."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.measurement.lookup import is_rdma, kind_label
from dgxcheck.facts.measurement import WITHHELD, NotMeasured
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.output.health import shares
from dgxcheck.output.plain_text import fit_columns, visible
from dgxcheck.readiness.figures import Figure

WIDTH = 80
MARKS = {Status.FAIL: "!", Status.UNKNOWN: "!", Status.WARN: "*"}
LEGEND = (
    {"!": "wrong or far below what is expected", "*": "below what is expected"},
    {"-": "not measured", "x": "not offered by the driver"},
)
"""By line."""
_SIGN = re.compile(r"(?<=[\w?])[!*](?= |$)|(?<= )[-x](?= |$)", re.MULTILINE)
"""Of a cell: a mark behind a figure or a word, or a sign alone."""
OF_A_GPU = {
    "host-to-device": ("from host", "GB/s"),
    "device-to-host": ("to host", "GB/s"),
    "host-both": ("both", "GB/s"),
    "device-copy": ("copy", "GB/s"),
    "device-copy-sm": ("copy by SM", "GB/s"),
    "memory-integrity": ("wrong", "words"),
    "compute": ("compute", "TFLOP/s"),
}
"""Columns of the first table, by kind."""
OF_A_PAIR = {
    "p2p": "P2P on, one way, GB/s, from the row's GPU to the column's",
    "p2p-both": "P2P on, both ways at once, GB/s",
    "p2p-off": "P2P off, one way, GB/s",
    "p2p-off-both": "P2P off, both ways at once, GB/s",
    "latency": "P2P on, latency of a small copy, us",
    "latency-off": "P2P off, latency of a small copy, us",
    "latency-sm": "P2P on, latency of a load, ns",
}
"""Titles of the matrices, by kind."""
BOTH_WAYS = ("p2p-both", "p2p-off-both")


def tables(figures: Sequence[Figure]) -> list[str]:
    """All tables, with an empty line below each; nothing where nothing was measured."""
    told = _gpus(figures)
    denied = {(each.a, each.b) for each in figures if each.row.kind == "access" and each.row.value is False}
    for kind, title in OF_A_PAIR.items():
        cells = {(each.a, each.b): each for each in figures if each.row.kind == kind}
        if kind in BOTH_WAYS:
            cells = {(b, a): each for (a, b), each in cells.items()} | cells
        if any(a != b for a, b in cells):
            told += [f"{title}:", *_matrix(cells, denied), "", *shares.matrix(cells, WIDTH)]
    others = [_of_all(each) for each in figures if each.row.kind in ("collective", "ring") or is_rdma(each.row.kind)]
    told += [*others, *([""] if others else [])]
    simulated = any(each.row.how == "simulated" for each in figures)
    notes = ["Simulated: no GPU gave these figures."] if simulated else []
    return [*told, *shares.bars(figures, WIDTH), *legend("\n".join(told)), *notes, ""] if told else []


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
    what = f"Copies around ring {row.a}" if row.kind == "ring" else f"{row.a} over {row.b} GPUs"
    return f"{visible(what)}: {_with_unit(figure)}"


def _with_unit(figure: Figure) -> str:
    """``24.21! GB/s``, or why there is no figure."""
    value = figure.row.value
    if isinstance(value, NotMeasured) and value.reason != "failed":
        return f"no figure ({visible(value.detail)})" if value.detail else "no figure"
    return f"{_cell(figure).strip()} {visible(figure.row.unit)}"


def _gpus(figures: Sequence[Figure]) -> list[str]:
    """A row for each GPU."""
    alone = {(each.row.kind, each.a): each for each in figures if each.row.kind in OF_A_GPU}
    kinds = [kind for kind in OF_A_GPU if any(kind == found for found, _ in alone)]
    names = list(dict.fromkeys(name for _, name in alone))
    body = []
    for kind in kinds:
        head, unit = OF_A_GPU[kind]
        cells = [_cell(found) if (found := alone.get((kind, name))) else "- " for name in names]
        body.append(shares.right([f"{head} ", f"{unit} ", *cells]))
    return [*fit_columns(["", "", *map(visible, names)], body, [], WIDTH)[0], ""] if body else []


def _matrix(cells: shares.Cells, denied: set[tuple[str, str]]) -> list[str]:
    names = shares.names(cells)
    body = []
    for b in names:
        column = []
        for a in names:
            found = cells.get((a, b))
            column.append(_cell(found) if found else "x " if (a, b) in denied else "- ")
        body.append(shares.right([f"{visible(b)} ", *column]))
    return fit_columns(["", *map(visible, names)], body, [], WIDTH)[0]


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
