"""A line per node, ``NODE TAB REASON``, by which a scheduler drains or resumes it."""

from __future__ import annotations

from dgxcheck.fleet.node import Node
from dgxcheck.fleet.result import LEVELS
from dgxcheck.output.drain_reason import Item, drain_reason
from dgxcheck.output.fleet.report import Report
from dgxcheck.output.plain_text import lines, visible


def render(report: Report) -> str:
    """Nodes without a result are left out: nothing is known of them."""
    return lines(f"{visible(node.name)}\t{reason_of(node)}" for node in report.fleet.nodes.values())


def reason_of(node: Node) -> str:
    """The level is the highest that found a fault; of a node without one that of its newest result."""
    failed = [each for each in node.faults if each.fault.status == "fail"]
    levels = [each.level for each in failed] or [node.newest.level]
    items = [
        Item(fault.check, fault.subject, fault.word, fault.figure, fault.cause, fault.step)
        for fault in (each.fault for each in failed)
    ]
    return drain_reason(node.verdict, max(levels, key=LEVELS.index), items)
