"""What ``dgxcheck topo --peers`` answers: which GPUs reach each other's memory directly."""

from __future__ import annotations

from dgxcheck.assessment.reach import peers as peers_of
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.cli.topo.question import Asked, Known
from dgxcheck.output.topo import peers as topo_peers


def peers(asked: Asked) -> Known:
    """``--peers``: complete where the verdict of every pair is known."""
    topology = asked.topology
    pairs = peers_of(asked.machine)
    if isinstance(pairs, Judgement):
        text = topo_peers.not_known(pairs)
        return asked.either(lambda: text + asked.notes(), lambda: {"peers": []}), pairs.reason == "not-supported"
    complete = not topology.gaps and all(pair.verdict != "cannot tell" for pair in pairs)
    return asked.either(
        lambda: topo_peers.text(topology, pairs, asked.labels, asked.width) + asked.notes(),
        lambda: topo_peers.as_json(pairs),
    ), complete
