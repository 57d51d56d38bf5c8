"""Peer-to-peer status of every pair of GPUs, as ``nvidia-smi topo -p2p`` shows it."""

from __future__ import annotations

from dgxcheck.facts.p2p import P2pStatus
from dgxcheck.output.plain import columns, lines, shown, visible
from dgxcheck.output.topo_json import either
from dgxcheck.reading import Json
from dgxcheck.topology.model import Topology

LEGEND = {
    "X": "the GPU itself",
    "OK": "can",
    "CNS": "chipset not supported",
    "GNS": "GPU not supported",
    "TNS": "topology not supported",
    "NS": "not supported",
    "DR": "disabled by a registry key",
    "U": "unknown to the driver",
    "?": "no answer",
}


def matrix(topology: Topology, statuses: tuple[P2pStatus, ...], capability: str, tabs: bool) -> str:
    """Status words from the row's GPU to the column's; in tab-separated cells for scripts that parse nvidia-smi."""
    names = {gpu.bdf: visible(gpu.name) for gpu in topology.gpus}
    found = {(each.a, each.b): getattr(each, capability) for each in statuses}
    rows = [["", *names.values()]]
    for a, name in names.items():
        words = (found.get((a or "", b or ""), "?") for b in names)
        rows.append([name, *(" X" if b == a else shown(word) for b, word in zip(names, words, strict=True))])
    legend = [f"  {line}" for line in columns([(word, f"= {text}") for word, text in LEGEND.items()], " ")]
    table = ["\t".join(row) for row in rows] if tabs else columns(rows)
    return lines([*table, "", f"Peer-to-peer {capability}, from the row's GPU to the column's:", *legend])


def as_json(topology: Topology, statuses: tuple[P2pStatus, ...], capability: str) -> dict[str, Json]:
    """The member ``p2p`` of the JSON document."""
    names = {gpu.bdf: gpu.name for gpu in topology.gpus}
    pairs: list[Json] = [
        {"a": names.get(each.a, each.a), "b": names.get(each.b, each.b), **either("status", getattr(each, capability))}
        for each in statuses
    ]
    return {"p2p": {"capability": capability, "pairs": pairs}}

