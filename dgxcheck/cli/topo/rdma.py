"""What ``dgxcheck topo --rdma`` answers: GPUDirect RDMA of every GPU and HCA."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.gpudirect.preconditions import no_rdma
from dgxcheck.checks.network.hcas import nics
from dgxcheck.cli.topo.question import Asked, Known
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.output.topo import rdma as topo_rdma
from dgxcheck.profiles import library
from dgxcheck.readiness.gpudirect import readiness


def rdma(asked: Asked) -> Known:
    """``--rdma``: complete where the verdict of every pair is known; a box without HCAs is known too."""
    topology = asked.topology
    box = Box(snapshot=asked.box, topology=topology, gpus=topology.gpus, boards=library.boards_for(None))
    nothing = no_rdma(box)
    if nothing is not None:
        text = topo_rdma.not_judged(nothing)
        found = asked.box.infiniband
        known = not topology.gaps and not (isinstance(found, Missing) and found.gap is not Gap.ABSENT)
        return asked.either(lambda: text + asked.notes(), lambda: {"rdma": []}), known
    pairs = [readiness(box, gpu, nic) for gpu in topology.gpus for nic in nics(box)]
    complete = not topology.gaps and all(pair.verdict != "cannot tell" for pair in pairs)
    return asked.either(
        lambda: topo_rdma.text(topology, pairs, asked.width) + asked.notes(), lambda: topo_rdma.as_json(pairs)
    ), complete
