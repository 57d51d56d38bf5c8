"""Peer-to-peer: NVML's status of each pair, and whether P2P works between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.engine.precondition import Precondition
from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.nvml.nvlink import P2pStatus
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
from dgxcheck.output.json_values import either
from dgxcheck.output.plain_text import columns, fit_columns, lines, shown, visible, wording
from dgxcheck.output.topo.matrix import cell
from dgxcheck.readiness.peer_access import Peering, Verdict
from dgxcheck.topology.model import Topology


class Reasons(Record, kw_only=False):
    """One pair."""

    a: str
    b: str
    cell: str
    """The pair's cell in the matrix."""
    reasons: tuple[tuple[str, str, str], ...]
    """Id of the check, its text, its remedy (may be empty)."""


def text_of(precondition: Precondition) -> str:
    """The precondition's summary for one pair, else the message of its judgement."""
    return precondition.summary or precondition.judgement.message


def reasons(pairs: Sequence[Reasons]) -> list[str]:
    """Paragraphs: reason, remedy, pairs."""
    pairs_by_reason = gathered(((f"{pair.cell}: {id_}: {visible(words)}", remedy), pair)
                               for pair in pairs for id_, words, remedy in pair.reasons)  # fmt: skip
    paragraphs = [""] if pairs_by_reason else []
    for (line, remedy), affected in pairs_by_reason.items():
        names = "all pairs" if len(affected) == len(pairs) else visible(_grouped(affected))
        paragraphs += [line, *([f"  {visible(remedy)}"] if remedy else []), f"  {names}"]
    return paragraphs


def _grouped(pairs: Iterable[Reasons]) -> str:
    """``GPU0, GPU1 with mlx5_1; GPU2 with mlx5_0, mlx5_3``."""
    targets = gathered((pair.a, pair.b) for pair in pairs)
    sources = gathered((", ".join(names), name) for name, names in targets.items())
    return "; ".join(f"{', '.join(group)} with {names}" for names, group in sources.items())


NOT_LISTED = Missing(Gap.ABSENT, "nvmlDeviceGetP2PStatus", "NVML does not list both GPUs")
_P2P_LEGEND = wording("p2p status")


def p2p_matrix(
    topology: Topology, statuses: tuple[P2pStatus, ...], capability: str, tabs: bool, width: int | None
) -> str:  # fmt: skip
    """Status words from the row's GPU to the column's; ``tabs``: in the format of nvidia-smi, for scripts."""
    names = {gpu.bdf or gpu.name: visible(gpu.name) for gpu in topology.gpus}
    status_of = {(status.a, status.b): getattr(status, capability) for status in statuses}
    cells = {(a, b): status_of.get((a, b), NOT_LISTED) for a in names for b in names}
    if tabs:
        rows = [" \t" + "".join(f"{name}\t" for name in names.values())]
        for a, name in names.items():
            rows.append(f" {name}\t" + "".join(f"{'X' if a == b else shown(cells[a, b])}\t" for b in names))
        return lines([*rows, "", "Legend:", "", *(f"  {word:4} = {text}" for word, text in _P2P_LEGEND.items())])
    body = [[names[b], *(" X" if a == b else shown(cells[a, b]) for a in names)] for b in names]
    table, _ = fit_columns(["", *names.values()], body, [], width)
    legend = [f"  {line}" for line in columns([(word, f"= {text}") for word, text in _P2P_LEGEND.items()], " ")]
    gaps = sorted({str(gap) for (a, b), gap in cells.items() if a != b and isinstance(gap, Missing)})
    reasons = [f"? {visible(gap)}" for gap in gaps]
    title = f"Peer-to-peer {capability}, from the row's GPU to the column's:"
    return lines([*table, "", title, *legend, *([""] if reasons else []), *reasons])


def p2p_as_json(topology: Topology, statuses: tuple[P2pStatus, ...], capability: str) -> dict[str, Json]:
    """The member ``p2p`` of the JSON document."""
    names = {gpu.bdf or gpu.name: gpu.name for gpu in topology.gpus}
    pairs: list[Json] = [
        {"a": names.get(pair.a, pair.a), "b": names.get(pair.b, pair.b), **either("status", getattr(pair, capability))}
        for pair in statuses
    ]
    return {"p2p": {"capability": capability, "pairs": pairs}}


CELLS: Mapping[Verdict, str] = {"slow": "slow", "refused": "no", "through the host": "host", "cannot tell": "?"}
LEGEND = wording("peer access")
_WORST: tuple[Verdict, ...] = ("refused", "cannot tell", "slow", "through the host", "direct")


def text(topology: Topology, pairs: Sequence[Peering], labels: str, width: int | None) -> str:
    """Matrix, legend and reasons; a pair with direct access shows the label of its path."""
    names = [gpu.name for gpu in topology.gpus if any(gpu in (pair.a, pair.b) for pair in pairs)]
    cells = {(pair.a.name, pair.b.name): _cell(topology, pair, labels) for pair in pairs}
    cells |= {(b, a): words for (a, b), words in cells.items()}
    rows = [[visible(row), *(" X" if row == name else cells.get((row, name), "?") for name in names)] for row in names]
    table, _ = fit_columns(["", *map(visible, names)], rows, [], width)
    shown_cells = {*cells.values()}
    direct = ", ".join(sorted(shown_cells - {*LEGEND}))
    meanings = ({direct: "direct access over this path"} if direct else {}) | LEGEND
    legend = columns([(f"  {word}", f"= {meanings[word]}") for word in meanings if word in (direct, *shown_cells)], " ")
    worst_first = sorted(pairs, key=lambda pair: _WORST.index(pair.verdict))
    return lines([*table, "", "Legend:", *legend, *reasons([_pair_reasons(pair) for pair in worst_first])])


def not_known(reason: Judgement) -> str:
    """The line for a machine where no pair of GPUs can be checked."""
    hint = "; dgxcheck health shows what to do" if reason.reason == "dependency-failed" else ""
    return f"Peer access is unknown: {visible(reason.message)}{hint}\n"


def _pair_reasons(pair: Peering) -> Reasons:
    texts = tuple((id_, text_of(reason), reason.judgement.remedy) for id_, reason in pair.reasons)
    return Reasons(pair.a.name, pair.b.name, CELLS.get(pair.verdict, ""), texts)


def _cell(topology: Topology, pair: Peering, labels: str) -> str:
    label = CELLS.get(pair.verdict) or cell(topology.link(pair.a, pair.b), False, labels)
    return "yes" if label == "?" and pair.verdict == "direct" else label


def as_json(pairs: Sequence[Peering]) -> dict[str, Json]:
    """The member ``peers`` of the JSON document."""
    found: list[Json] = [
        {"a": pair.a.name, "b": pair.b.name, "verdict": pair.verdict, "preconditions": [
            {"check": id_, "state": item.state, "message": text_of(item), "remedy": item.judgement.remedy or None}
            for id_, item in pair.preconditions
        ]}
        for pair in pairs
    ]  # fmt: skip
    return {"peers": found}
