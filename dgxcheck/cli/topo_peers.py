"""What ``dgxcheck topo --peers`` answers: which GPUs reach each other's memory directly."""

from __future__ import annotations

from dgxcheck.checks.check import Box
from dgxcheck.checks.finding import Judgement
from dgxcheck.checks.p2p_ready import peerings
from dgxcheck.cli.topo_asked import Asked, Known
from dgxcheck.output import topo_peers
from dgxcheck.output.plain import visible
from dgxcheck.profiles import library


def peers(asked: Asked) -> Known:
    """``--peers``: complete where the verdict of every pair is known."""
    topology = asked.topology
    choice = library.chosen("auto", asked.box, topology)
    box = Box(
        snapshot=asked.box, topology=topology, gpus=topology.gpus, choice=choice, boards=library.boards_for(choice)
    )  # fmt: skip
    pairs = peerings(box)
    if isinstance(pairs, Judgement):
        text = f"Peer access is not known: {visible(pairs.message)}\n"
        return asked.either(lambda: text + asked.notes(), lambda: {"peers": []}), pairs.reason == "not-supported"
    complete = not topology.gaps and all(pair.verdict != "cannot tell" for pair in pairs)
    return asked.either(
        lambda: topo_peers.text(topology, pairs, asked.labels, asked.width) + asked.notes(),
        lambda: topo_peers.as_json(pairs),
    ), complete
