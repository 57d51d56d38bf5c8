"""A fabric as metrics, in the classic text format of Prometheus."""

from __future__ import annotations

from collections import Counter

from dgxcheck.fabric.capacity import bisection_gbs, leaves_of
from dgxcheck.output.exposition import STATES, VERDICT_VALUES, classic, metric, now
from dgxcheck.output.report import FabricReport


def render(report: FabricReport) -> str:
    """Three series per leaf, one per kind of fault."""
    judged = report.judged
    leaves = leaves_of(judged)
    faults = Counter(finding.fault.word for finding in judged.findings)
    return classic([
        now("fabric_timestamp_seconds", "When the fabric was judged."),
        metric("fabric_verdict", f"{VERDICT_VALUES}.", [({}, STATES[judged.verdict])]),
        metric("fabric_faults", "Findings by fault.", [({"fault": word}, n) for word, n in faults.items()]),
        metric("fabric_cables", "Cables that were discovered.", [({}, len(judged.fabric.cables))]),
        metric("fabric_bisection_bytes_per_second", "Between two halves of the systems, both directions.",
               [({}, bisection_gbs(leaves) * 1e9)]),
        metric("fabric_leaf_systems", "Systems on a leaf.",
               [({"switch": leaf.name}, len(leaf.systems)) for leaf in leaves]),
        metric("fabric_leaf_adapters", "Links of a leaf to adapters.",
               [({"switch": leaf.name}, leaf.adapters) for leaf in leaves]),
        metric("fabric_leaf_uplinks", "Links of a leaf to the switches above.",
               [({"switch": leaf.name}, leaf.uplinks) for leaf in leaves]),
    ])  # fmt: skip
