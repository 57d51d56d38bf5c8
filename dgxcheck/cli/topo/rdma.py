"""What ``dgxcheck topo --rdma`` answers: GPUDirect RDMA of every GPU and HCA."""

from __future__ import annotations

from dgxcheck.assessment.reach import rdma as rdma_of
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.cli.topo.question import Asked, Known
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.output.topo import rdma as topo_rdma


def rdma(asked: Asked) -> Known:
    """``--rdma``: complete where the verdict of every pair is known; a box without HCAs is known too."""
    topology = asked.topology
    pairs = rdma_of(asked.machine)
    if isinstance(pairs, Judgement):
        text = topo_rdma.not_judged(pairs)
        hcas = asked.snapshot.infiniband
        known = not topology.gaps and not (isinstance(hcas, Missing) and hcas.gap is not Gap.ABSENT)
        return asked.either(lambda: text + asked.notes(), lambda: {"rdma": []}), known
    complete = not topology.gaps and all(pair.verdict != "cannot tell" for pair in pairs)
    return asked.either(
        lambda: topo_rdma.text(topology, pairs, asked.width) + asked.notes(), lambda: topo_rdma.as_json(pairs)
    ), complete
