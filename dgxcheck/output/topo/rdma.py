"""GPUDirect RDMA of every GPU and HCA: a matrix, the best HCA of each GPU, and the reasons why pairs are not ready."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.output.plain_text import columns, fit_columns, lines, visible, wording
from dgxcheck.output.topo.matrix import nic_legend, row_names
from dgxcheck.output.topo.path import bounds
from dgxcheck.output.topo.peers import Reasons, reasons, text_of
from dgxcheck.readiness.gpudirect import Readiness, remedy_of
from dgxcheck.topology.model import Topology

CELLS = {"ready": "ready", "slow": "slow", "not ready": "no", "cannot tell": "?"}
LEGEND = wording("rdma")
_ORDER = tuple(CELLS)


def text(topology: Topology, pairs: Sequence[Readiness], width: int | None) -> str:
    """Matrix, legend, best HCA of each GPU and reasons."""
    names = row_names(topology, numbered_nics=False)
    gpus = list(dict.fromkeys(pair.gpu.name for pair in pairs))
    hcas = list(dict.fromkeys(pair.nic.name for pair in pairs))
    cells = {(pair.gpu.name, pair.nic.name): CELLS[pair.verdict] for pair in pairs}
    head = ["", *(names[gpu] for gpu in gpus)]
    table, _ = fit_columns(head, [[names[hca], *(cells[gpu, hca] for gpu in gpus)] for hca in hcas], [], width)
    shown_cells = {*cells.values()}
    legend = columns([(f"  {cell}", f"= {words}") for cell, words in LEGEND.items() if cell in shown_cells], " ")
    best = [_sentence(pair) for gpu in gpus for pair in _best([pair for pair in pairs if pair.gpu.name == gpu])]
    nics = nic_legend(topology, names)
    worst_first = sorted(pairs, key=lambda pair: -_ORDER.index(pair.verdict))
    explanations = reasons([_pair_reasons(pair) for pair in worst_first])
    return lines([*table, "", "Legend:", *legend, *([""] if nics else []), *nics, "", *best, *explanations])


def not_judged(reason: Judgement) -> str:
    """The line for a machine without pairs of GPU and HCA."""
    return f"GPUDirect RDMA: {visible(reason.message)}.\n"


def _best(pairs: Sequence[Readiness]) -> list[Readiness]:
    """The best HCAs of a GPU; if none is ready, those on the best path, else the first."""
    verdict = min((pair.verdict for pair in pairs), key=_ORDER.index)
    if verdict == "ready":
        return [pair for pair in pairs if pair.verdict == verdict]
    near = [pair for pair in pairs if dict(pair.preconditions)["gdr.path"].state == "ready"]
    return near or [pair for pair in pairs if pair.verdict == verdict][:1]


def _sentence(pair: Readiness) -> str:
    """``GPU3 -> mlx5_1: ready, expected 11.2 GB/s``."""
    between = f"{visible(pair.gpu.name)} -> {visible(pair.nic.name)}: {pair.verdict}"
    if pair.verdict not in ("ready", "slow"):
        return f"{between}, {visible(text_of(pair.reasons[0][1]))}"
    rate = pair.expected
    if isinstance(rate.most, Missing):
        return f"{between}, expected bandwidth unknown"
    limits = "" if rate.is_known else f", limited by {visible(', '.join(limit.name for limit in pair.limited_by))}"
    return f"{between}, expected {rate}{limits}"


def _pair_reasons(pair: Readiness) -> Reasons:
    texts = tuple((id_, text_of(reason), remedy_of(id_, reason)) for id_, reason in pair.reasons)
    return Reasons(pair.gpu.name, pair.nic.name, CELLS[pair.verdict], texts)


def as_json(pairs: Sequence[Readiness]) -> dict[str, Json]:
    """The member ``rdma`` of the JSON document."""
    found: list[Json] = [
        {"gpu": pair.gpu.name, "hca": pair.nic.name, "verdict": pair.verdict, **bounds(pair.expected),
         "limited_by": [limit.name for limit in pair.limited_by], "preconditions": [
            {"check": id_, "state": CELLS.get(item.state, item.state), "message": text_of(item)}
            for id_, item in pair.preconditions
        ]}
        for pair in pairs
    ]  # fmt: skip
    return {"rdma": found}
