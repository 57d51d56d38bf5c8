"""A fleet as metrics, in the classic text format of Prometheus; a series per node, and one per kind of fault."""

from __future__ import annotations

from dgxcheck.fleet.node import VERDICTS
from dgxcheck.output.exposition import STATES, classic, metric, now
from dgxcheck.output.report import FleetReport
from dgxcheck.source.state_file import seconds_of


def render(report: FleetReport) -> str:
    """``3 x nodes + faults + 9`` series; a node without a result is unknown: a series that ends resolves its alert."""
    fleet = report.fleet
    counts = [({"verdict": word}, len(fleet.with_verdict(word))) for word in VERDICTS]
    verdicts = [({"node": name}, STATES[node.verdict]) for name, node in fleet.nodes.items()]
    verdicts += [({"node": name}, STATES["unknown"]) for name in fleet.silent]
    dates = [({"node": name}, seconds_of(node.newest.generated_at)) for name, node in fleet.nodes.items()]
    less = {each.node for each in fleet.judged_less}
    scores = [({"node": name}, score) for name, node in fleet.nodes.items() if (score := node.newest.score) is not None]
    faults = [({"check": kind.check, "fault": kind.word}, len(kind.nodes)) for kind in fleet.kinds]
    return classic([
        now("fleet_timestamp_seconds"),
        metric("fleet_verdict", [({}, STATES[fleet.verdict])]),
        metric("fleet_nodes", counts),
        metric("fleet_silent_nodes", [({}, len(fleet.silent))]),
        metric("fleet_judged_less_nodes", [({}, len(less))]),
        metric("fleet_outliers", [({}, len(fleet.outliers))]),
        metric("fleet_fault_nodes", faults),
        metric("fleet_node_verdict", verdicts),
        metric("fleet_node_result_timestamp_seconds", dates),
        metric("fleet_node_score", scores),
    ])  # fmt: skip
