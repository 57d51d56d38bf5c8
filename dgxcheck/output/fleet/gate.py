"""May repaired nodes return to service?"""

from __future__ import annotations

from dgxcheck.fleet.judge import Fleet
from dgxcheck.fleet.node import Node
from dgxcheck.output.fleet.report import Report
from dgxcheck.output.plain_text import lines, visible


def render(report: Report) -> str:
    """A line per node: return, or what holds it back."""
    fleet = report.fleet
    rows = [_row(node) for node in fleet.nodes.values()]
    rows += [f"{name}: hold: no result" for name in fleet.silent]
    rows += [f"hold: not read: {each.where}: {each.why}" for each in fleet.unread]
    return lines(map(visible, rows))


def may_return(fleet: Fleet) -> bool:
    """May all of them?"""
    return bool(fleet.nodes) and not fleet.silent and not fleet.unread and all(map(_clear, fleet.nodes.values()))


def _clear(node: Node) -> bool:
    """Nothing fails and nothing is unknown."""
    return node.verdict in ("pass", "warn")


def _row(node: Node) -> str:
    newest = node.newest
    if _clear(node):
        warned = f", {len(node.faults)} warn" if node.faults else ""
        return f"{node.name}: return: level {newest.level}, {newest.generated_at}{warned}"
    held = [
        f"{each.fault.key} found by level {each.level} at {each.found_at}"
        + ("" if each.fault.key in {fault.key for fault in newest.faults} else f"; no {each.level} result since")
        for each in node.faults
        if each.fault.status in ("fail", "unknown")
    ]
    return f"{node.name}: hold: {'; '.join(held) or f'verdict {newest.verdict}'}"
