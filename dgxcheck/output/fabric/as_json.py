"""The document of schema ``dgxcheck/fabric/1``."""

from __future__ import annotations

import time
from collections import Counter

from dgxcheck import __version__
from dgxcheck.fabric.capacity import Leaf, bisection_gbs, leaves_of
from dgxcheck.fabric.finding import FabricFinding
from dgxcheck.fabric.intent import ANY
from dgxcheck.fabric.judge import Judged
from dgxcheck.fabric.model import Port
from dgxcheck.facts.missing import Json
from dgxcheck.output.json_values import compact
from dgxcheck.output.report import FabricReport


def render(report: FabricReport) -> str:
    """Findings with their moves, schemes, and each leaf."""
    judged = report.judged
    leaves = leaves_of(judged)
    tiers = Counter(judged.tiers.of.values())
    schemes: list[Json] = [
        {"systems": [*scheme.systems], "adapters": [*scheme.adapters], "blocks": [[*block] for block in scheme.blocks]}
        for scheme in judged.intent.schemes
    ]
    unread: list[Json] = [*judged.unread]
    return compact(
        {
            "schema": "dgxcheck/fabric/1",
            "tool_version": __version__,
            "generated_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "verdict": judged.verdict,
            "summary": {
                "systems": len({adapter.host for adapter in judged.fabric.adapters.values() if adapter.host}),
                "adapters": len(judged.fabric.adapters),
                "cables": len(judged.fabric.cables),
                "leaves": tiers[0],
                "spines": tiers[1],
                "cores": tiers.total() - tiers[0] - tiers[1],
                "bisection_gbs": round(bisection_gbs(leaves), 1),
                "exit_code": report.exit_code,
            },
            "planned": judged.intent.planned,
            "schemes": schemes,
            "findings": [_finding(finding, judged) for finding in judged.findings],
            "leaves": [_leaf(leaf) for leaf in leaves],
            "unread": unread,
        }
    )


def _finding(finding: FabricFinding, judged: Judged) -> Json:
    return {
        "status": finding.status,
        "fault": finding.fault.word,
        "ends": [*finding.ends],
        "message": finding.message,
        "action": finding.action,
        "seats": [*finding.seats],
        "moves": [
            {"plug": _port(move.of, judged), "from": _port(move.source, judged), "to": _port(move.target, judged)}
            for move in finding.moves
        ],
    }


def _port(port: Port, judged: Judged) -> Json:
    """0 for any port of that switch."""
    adapter = judged.fabric.adapters.get(port[0])
    if adapter is not None:
        return {"guid": port[0], "host": adapter.host, "adapter": adapter.name}
    return {"guid": port[0], "switch": judged.fabric.switch(port[0]), "port": 0 if port[1] == ANY else port[1]}


def _leaf(leaf: Leaf) -> Json:
    return {
        "guid": leaf.guid,
        "name": leaf.name,
        "systems": [*leaf.systems],
        "adapters": leaf.adapters,
        "uplinks": leaf.uplinks,
        "down_gbit": leaf.down_gbit,
        "up_gbit": leaf.up_gbit,
    }
