"""A fleet as metrics, in the classic text format of Prometheus; a series per node, and one per kind of fault."""

from __future__ import annotations

from dgxcheck.fleet.result import VERDICTS
from dgxcheck.output.exposition import metric
from dgxcheck.output.fleet.report import Report
from dgxcheck.output.plain_text import lines

_CODES = {"pass": 0, "warn": 1, "fail": 2, "unknown": 3}


def render(report: Report) -> str:
    """``2 x nodes + faults + 6`` series."""
    fleet = report.fleet
    counts = [({"verdict": word}, len(fleet.with_verdict(word))) for word in VERDICTS]
    verdicts = [({"node": name}, _CODES[node.verdict]) for name, node in fleet.nodes.items()]
    scores = [({"node": name}, score) for name, node in fleet.nodes.items()
              if (score := node.newest.score) is not None]  # fmt: skip
    faults = [({"check": kind.check, "fault": kind.word}, len(kind.nodes)) for kind in fleet.kinds]
    return lines(
        [
            *metric("fleet_nodes", "Nodes by verdict.", counts),
            *metric("fleet_silent_nodes", "Expected nodes without a result.", [({}, len(fleet.silent))]),
            *metric("fleet_outliers", "Figures off the median of the fleet.", [({}, len(fleet.outliers))]),
            *metric("fleet_fault_nodes", "Nodes with a kind of fault.", faults),
            *metric("fleet_node_verdict", "0 pass, 1 warn, 2 fail, 3 unknown.", verdicts),
            *metric("fleet_node_score", "Share of the reference machine that is there, 0 to 100.", scores),
        ]
    )
