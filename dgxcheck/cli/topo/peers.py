"""What ``dgxcheck topo --peers`` answers: which GPUs reach each other's memory directly."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.cli.topo.question import Asked, Known
from dgxcheck.output.topo import peers as topo_peers
from dgxcheck.profiles import library
from dgxcheck.readiness.peer_access import peerings


def peers(asked: Asked) -> Known:
    """``--peers``: complete where the verdict of every pair is known."""
    topology = asked.topology
    choice = library.chosen("auto", asked.box, topology)
    box = Box(
        snapshot=asked.box, topology=topology, gpus=topology.gpus, choice=choice, boards=library.boards_for(choice)
    )  # fmt: skip
    pairs = peerings(box)
    if isinstance(pairs, Judgement):
        text = topo_peers.not_known(pairs)
        return asked.either(lambda: text + asked.notes(), lambda: {"peers": []}), pairs.reason == "not-supported"
    complete = not topology.gaps and all(pair.verdict != "cannot tell" for pair in pairs)
    return asked.either(
        lambda: topo_peers.text(topology, pairs, asked.labels, asked.width) + asked.notes(),
        lambda: topo_peers.as_json(pairs),
    ), complete
