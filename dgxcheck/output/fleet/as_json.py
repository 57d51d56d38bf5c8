"""The document of schema ``dgxcheck/fleet/1``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.facts.missing import Json
from dgxcheck.fleet.judge import KindOfFault, VersionDifference
from dgxcheck.fleet.node import VERDICTS, Node, OpenFault
from dgxcheck.fleet.node_names import folded
from dgxcheck.output.json_values import compact, head, members
from dgxcheck.output.report import FleetReport


def render(report: FleetReport) -> str:
    """All nodes, each kind of fault, outliers and versions."""
    fleet = report.fleet
    return compact({
        **head("dgxcheck/fleet/1"),
        "verdict": fleet.verdict,
        "summary": {
            **{word: len(fleet.with_verdict(word)) for word in VERDICTS}, "silent": len(fleet.silent),
            "results": fleet.results, "exit_code": report.exit_code,
        },
        "silent": [*fleet.silent],
        "nodes": [_node(node) for node in fleet.nodes.values()],
        "faults": [_kind(kind) for kind in fleet.kinds],
        "outliers": [
            {**members(each, "node key value median nodes another_driver"), "off": round(each.off, 4)}
            for each in fleet.outliers
        ],
        "counts": [{**members(each, "kind profile? model"), "values": _values(each.nodes)}
                   for each in fleet.device_counts],
        "judged_less": [members(each, "node aspect value? usual?") for each in fleet.judged_less],
        "versions": [_difference(difference) for difference in fleet.differences],
        "unread": [members(unreadable, "where why") for unreadable in fleet.unread],
    })  # fmt: skip


def _node(node: Node) -> Json:
    newest = node.newest
    return {
        **members(node, "name verdict"),
        "newest": members(newest, "verdict level generated_at live"),
        **members(node, "stale machines same_as?"),
        **members(newest, "score coverage profile=group.profile? gpus=group.gpus driver=group.driver?"),
        "faults": [_fault(fault) for fault in node.faults],
    }


def _fault(found: OpenFault) -> Json:
    return members(found.fault, "key status fault=word? subject message action?") | members(found, "level found_at")


def _kind(kind: KindOfFault) -> Json:
    return {**members(kind, "check fault=word? status"), "count": len(kind.nodes), "nodes": folded(kind.nodes),
            **members(kind, "common version?"), "version_nodes": kind.having}


def _difference(difference: VersionDifference) -> Json:
    return {"name": difference.name, "gpus": difference.gpus, "values": _values(difference.nodes),
            "rare": [*difference.rare]}


def _values(nodes: Mapping[str, Sequence[str]] | Mapping[int, Sequence[str]]) -> list[Json]:
    return [{"value": value, "count": len(names), "nodes": folded(names)} for value, names in nodes.items()]
