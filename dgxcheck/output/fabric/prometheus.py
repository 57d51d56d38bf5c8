"""A fabric as metrics, in the classic text format of Prometheus."""

from __future__ import annotations

from collections import Counter

from dgxcheck.fabric.capacity import bisection_gbs, leaves_of
from dgxcheck.output.exposition import STATES, classic, metric, now
from dgxcheck.output.report import FabricReport


def render(report: FabricReport) -> str:
    """Three series per leaf, one per kind of fault."""
    judged = report.judged
    leaves = leaves_of(judged)
    faults = Counter(finding.fault.word for finding in judged.findings)
    return classic([
        now("fabric_timestamp_seconds"),
        metric("fabric_verdict", [({}, STATES[judged.verdict])]),
        metric("fabric_faults", [({"fault": word}, n) for word, n in faults.items()]),
        metric("fabric_cables", [({}, len(judged.fabric.cables))]),
        metric("fabric_bisection_bytes_per_second", [({}, bisection_gbs(leaves) * 1e9)]),
        metric("fabric_leaf_systems", [({"switch": leaf.name}, len(leaf.systems)) for leaf in leaves]),
        metric("fabric_leaf_adapters", [({"switch": leaf.name}, leaf.adapters) for leaf in leaves]),
        metric("fabric_leaf_uplinks", [({"switch": leaf.name}, leaf.uplinks) for leaf in leaves]),
    ])  # fmt: skip
