"""What a scheduler asks of a fleet: reasons to drain, nodes that may return, blocks of its topology."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.judge import Fleet
from dgxcheck.fleet.node import LEVELS, Node
from dgxcheck.fleet.node_names import folded
from dgxcheck.output.drain_reason import Item, drain_reason
from dgxcheck.output.fleet.text import less_text
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.output.report import FleetReport


def drain_reasons(report: FleetReport) -> str:
    """Nodes without a result are left out: nothing is known of them."""
    return lines(f"{visible(node.name)}\t{reason_of(node)}" for node in report.fleet.nodes.values())


def reason_of(node: Node) -> str:
    """The level is the highest that found a fault; of a node without one that of its newest result.

    Nothing is known of a node whose newest result is stale or no result of the machine itself.
    """
    if not node.current:
        return drain_reason("unknown", node.newest.level, [])
    failed = [fault for fault in node.faults if fault.fault.status == "fail"]
    levels = [fault.level for fault in failed] or [node.newest.level]
    items = [Item(each.check, each.subject, each.word, each.figure, each.cause, each.step)
             for each in (fault.fault for fault in failed)]  # fmt: skip
    return drain_reason(node.verdict, max(levels, key=LEVELS.index), items)


def gate(report: FleetReport) -> str:
    """A line per node: return, or what holds it back."""
    fleet = report.fleet
    less = gathered((each.node, less_text(each)) for each in fleet.judged_less if each.holds_back)
    rows = [_held_or_returned(node, less.get(name, ())) for name, node in fleet.nodes.items()]
    rows += [f"{name}: hold: no result" for name in fleet.silent]
    rows += [f"hold: not read: {unreadable.where}: {unreadable.why}" for unreadable in fleet.unread]
    return lines(map(visible, rows))


def may_return(fleet: Fleet) -> bool:
    """May all of them?"""
    less = any(each.holds_back and each.node in fleet.nodes for each in fleet.judged_less)
    open_ends = fleet.silent or fleet.unread or less
    return bool(fleet.nodes) and not open_ends and all(map(_clear, fleet.nodes.values()))


def _clear(node: Node) -> bool:
    """The newest result is of the machine as it is now, nothing fails and nothing is unknown."""
    return node.current and not node.same_as and node.verdict in ("pass", "warn")


def _held_or_returned(node: Node, less: Sequence[str]) -> str:
    newest = node.newest
    if _clear(node) and not less:
        warned = f", {len(node.faults)} warn" if node.faults else ""
        return f"{node.name}: return: level {newest.level}, {newest.generated_at}{warned}"
    held = [] if newest.live else ["its newest result is not of the machine itself"]
    held += [f"judged by less than most nodes alike: {', '.join(less)}"] if less else []
    held += [node.shared] if node.shared else []
    held += [f"the same machine as {node.same_as}"] if node.same_as else []
    held += [f"its newest result is too old: {newest.generated_at}"] if node.stale else []
    held += [
        f"{each.fault.key} found by level {each.level} at {each.found_at}"
        + (f" on {each.machine or 'a machine without a serial number'}" if node.shared else "")
        + ("" if each.fault.key in {fault.key for fault in newest.faults} else f"; no {each.level} result since")
        for each in node.faults
        if each.fault.status in ("fail", "unknown")
    ]
    return f"{node.name}: hold: {'; '.join(held) or f'verdict {newest.verdict}'}"


_DOMAIN = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\.[0-9]{1,10}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_UNKNOWN = "# no switch of InfiniBand or Ethernet is named, as hosts do not see them; ibnetdiscover(8) lists them"


def blocks(report: FleetReport) -> str:
    """``topology.conf`` of Slurm for ``topology/block``: a block per NVLink domain, topology.conf(5).

    Nodes in no domain, or in several, are named in comments. A host sees the ports of its own HCAs, never the switches
    behind them: no ``SwitchName`` can be told from results.
    """
    return lines(map(visible, _lines(report)))


def _lines(report: FleetReport) -> Iterator[str]:
    nodes = [node for node in report.fleet.nodes.values() if _NAME.fullmatch(node.name)]
    domains = {node.name: [each for each in node.newest.nvlink_domains if _DOMAIN.fullmatch(each)] for node in nodes}
    blocks = gathered((found[0], name) for name, found in domains.items() if len(found) == 1)
    for domain, names in sorted(blocks.items()):
        yield f"# NVLink domain {domain}: cluster UUID and clique"
        cluster, _, clique = domain.partition(".")
        # the same for the same domain, whichever others there are
        yield f"BlockName=nvl-{cluster.partition('-')[0]}-{clique} Nodes={folded(names)}"
    if alone := [name for name, found in domains.items() if not found]:
        yield f"# in no NVLink domain of several machines: {folded(alone)}"
    for name, found in domains.items():
        if len(found) > 1:
            yield f"# {name} has GPUs in several NVLink domains: {', '.join(found)}"
    if report.fleet.silent:
        yield f"# without a result: {folded(report.fleet.silent)}"
    yield from (f"# not read: {unreadable.where}: {unreadable.why}" for unreadable in report.fleet.unread)
    yield _UNKNOWN
