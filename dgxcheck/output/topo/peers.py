"""Peer access of every pair of GPUs: a matrix, and the reasons why pairs have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.facts.missing import Json
from dgxcheck.output.plain_text import columns, fit_columns, lines, visible
from dgxcheck.output.topo.matrix import cell
from dgxcheck.output.topo.reasons import Reasons, reasons, text_of
from dgxcheck.readiness.peer_access import Peering, Verdict
from dgxcheck.topology.model import Topology

CELLS: Mapping[Verdict, str] = {"slow": "slow", "refused": "no", "through the host": "host", "cannot tell": "?"}
LEGEND = {
    "yes": "direct access over a path that is unknown",
    "slow": "direct, but slower than expected, or not over the shortest path",
    "no": "refused or blocked, or data does not arrive intact",
    "host": "through host memory, as the driver reports for such a pair",
    "?": "unknown, for the reason below",
}
_WORST: tuple[Verdict, ...] = ("refused", "cannot tell", "slow", "through the host", "direct")


def text(topology: Topology, pairs: Sequence[Peering], labels: str, width: int | None) -> str:
    """Matrix, legend and reasons; a pair with direct access shows the label of its path."""
    names = [gpu.name for gpu in topology.gpus if any(gpu in (pair.a, pair.b) for pair in pairs)]
    cells = {ends: _cell(topology, pair, labels) for pair in pairs for ends in _both(pair)}
    rows = [[visible(row), *(" X" if row == name else cells.get((row, name), "?") for name in names)] for row in names]
    table, _ = fit_columns(["", *map(visible, names)], rows, [], width)
    shown_cells = {*cells.values()}
    direct = ", ".join(sorted(shown_cells - {*LEGEND}))
    meanings = ({direct: "direct access over this path"} if direct else {}) | LEGEND
    legend = columns([(f"  {word}", f"= {meanings[word]}") for word in meanings if word in (direct, *shown_cells)], " ")
    worst_first = sorted(pairs, key=lambda pair: _WORST.index(pair.verdict))
    explanations = reasons([_pair_reasons(pair) for pair in worst_first])
    return lines([*table, "", "Legend:", *legend, *explanations])


def not_known(reason: Judgement) -> str:
    """The line for a machine where no pair of GPUs can be checked."""
    return f"Peer access is unknown: {visible(reason.message)}\n"


def _pair_reasons(pair: Peering) -> Reasons:
    texts = tuple((id_, text_of(reason), reason.judgement.remedy) for id_, reason in pair.reasons)
    return Reasons(pair.a.name, pair.b.name, CELLS.get(pair.verdict, ""), texts)


def _both(pair: Peering) -> tuple[tuple[str, str], tuple[str, str]]:
    return (pair.a.name, pair.b.name), (pair.b.name, pair.a.name)


def _cell(topology: Topology, pair: Peering, labels: str) -> str:
    label = CELLS.get(pair.verdict) or cell(topology.link(pair.a, pair.b), False, labels)
    return "yes" if label == "?" and pair.verdict == "direct" else label


def as_json(pairs: Sequence[Peering]) -> dict[str, Json]:
    """The member ``peers`` of the JSON document."""
    return {"peers": [_pair(pair) for pair in pairs]}


def _pair(pair: Peering) -> Json:
    preconditions: list[Json] = [
        {"check": id_, "state": item.state, "message": text_of(item), "remedy": item.judgement.remedy or None}
        for id_, item in pair.preconditions
    ]
    return {"a": pair.a.name, "b": pair.b.name, "verdict": pair.verdict, "preconditions": preconditions}
