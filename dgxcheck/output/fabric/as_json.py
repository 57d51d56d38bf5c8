"""The document of schema ``dgxcheck/fabric/1``."""

from __future__ import annotations

from collections import Counter

from dgxcheck.fabric.capacity import bisection_gbs, leaves_of
from dgxcheck.fabric.finding import FabricFinding
from dgxcheck.fabric.judge import Judged
from dgxcheck.fabric.model import Port
from dgxcheck.facts.missing import Json
from dgxcheck.output.json_values import compact, head, members
from dgxcheck.output.report import FabricReport
from dgxcheck.readers.fabric.rows import is_guid


def render(report: FabricReport) -> str:
    """Findings with their moves, schemes, and each leaf."""
    judged = report.judged
    leaves = leaves_of(judged)
    tiers = Counter(judged.tiers.of.values())
    return compact({
        **head("dgxcheck/fabric/1"),
        "verdict": judged.verdict,
        "summary": {
            "systems": len({adapter.host for adapter in judged.fabric.adapters.values() if adapter.host}),
            "adapters": len(judged.fabric.adapters), "cables": len(judged.fabric.cables),
            "leaves": tiers[0], "spines": tiers[1], "cores": tiers.total() - tiers[0] - tiers[1],
            "bisection_gbs": round(bisection_gbs(leaves), 1),
            "exit_code": report.exit_code,
        },
        "planned": judged.intent.planned,
        "schemes": [members(scheme, "systems adapters blocks") for scheme in judged.intent.schemes],
        "findings": [_finding(finding, judged) for finding in judged.findings],
        "leaves": [{"guid": _guid(leaf.guid), **members(leaf, "name systems adapters uplinks down_gbit up_gbit")}
                   for leaf in leaves],
        "unread": [*judged.unread],
    })  # fmt: skip


def _finding(finding: FabricFinding, judged: Judged) -> Json:
    return {
        **members(finding, "status fault=fault.word ends message action seats disturbs"),
        "moves": [
            {"plug": _port(move.of, judged), "from": _port(move.source, judged), "to": _port(move.target, judged)}
            for move in finding.moves
        ],
    }


def _guid(node: str) -> str:
    """Empty of a node that was named without one (lldpctl, iblinkinfo of the nodes on the other side)."""
    return node if is_guid(node) else ""


def _port(port: Port, judged: Judged) -> Json:
    """0 for any port of that switch."""
    if (adapter := judged.fabric.adapters.get(port[0])) is not None:
        return {"guid": _guid(port[0]), "host": adapter.host, "adapter": adapter.name}
    return {"guid": _guid(port[0]), "switch": judged.fabric.switch(port[0]), "port": port[1]}
