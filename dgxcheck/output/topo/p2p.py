"""Peer-to-peer status of every pair of GPUs, as ``nvidia-smi topo -p2p`` shows it."""

from __future__ import annotations

from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.nvlink import P2pStatus
from dgxcheck.output.json_null import either
from dgxcheck.output.plain_text import columns, fit_columns, lines, shown, visible
from dgxcheck.topology.model import Topology

NOT_LISTED = Missing(Gap.ABSENT, "nvmlDeviceGetP2PStatus", "NVML does not list both GPUs")
LEGEND = {
    "X": "the GPU itself",
    "OK": "supported",
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "NS": "not supported",
    "DR": "disabled by a registry key",
    "U": "unknown to the driver",
    "?": "unknown, for the reason below",
}


def matrix(topology: Topology, statuses: tuple[P2pStatus, ...], capability: str, tabs: bool, width: int | None) -> str:
    """Status words from the row's GPU to the column's; ``tabs``: in the format of nvidia-smi, for scripts."""
    names = {gpu.bdf or gpu.name: visible(gpu.name) for gpu in topology.gpus}
    status_of = {(status.a, status.b): getattr(status, capability) for status in statuses}
    cells = {(a, b): status_of.get((a, b), NOT_LISTED) for a in names for b in names}
    if tabs:
        rows = [" \t" + "".join(f"{name}\t" for name in names.values())]
        for a, name in names.items():
            rows.append(f" {name}\t" + "".join(f"{'X' if a == b else shown(cells[a, b])}\t" for b in names))
        return lines([*rows, "", "Legend:", "", *(f"  {word:4} = {text}" for word, text in LEGEND.items())])
    body = [
        [names[b], *(" X" if a == b else shown(cells[a, b]) for a in names)] for b in names
    ]  # fmt: skip
    table, _ = fit_columns(["", *names.values()], body, [], width)
    legend = [f"  {line}" for line in columns([(word, f"= {text}") for word, text in LEGEND.items()], " ")]
    gaps = sorted({str(gap) for (a, b), gap in cells.items() if a != b and isinstance(gap, Missing)})
    reasons = [f"? {visible(gap)}" for gap in gaps]
    title = f"Peer-to-peer {capability}, from the row's GPU to the column's:"
    return lines([*table, "", title, *legend, *([""] if reasons else []), *reasons])


def as_json(topology: Topology, statuses: tuple[P2pStatus, ...], capability: str) -> dict[str, Json]:
    """The member ``p2p`` of the JSON document."""
    names = {gpu.bdf or gpu.name: gpu.name for gpu in topology.gpus}
    pairs: list[Json] = [
        {"a": names.get(pair.a, pair.a), "b": names.get(pair.b, pair.b), **either("status", getattr(pair, capability))}
        for pair in statuses
    ]
    return {"p2p": {"capability": capability, "pairs": pairs}}
