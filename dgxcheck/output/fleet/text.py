"""A fleet as text: how many nodes are how, what is wrong where, who differs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.fleet.judge import Difference, Fleet, Kind
from dgxcheck.fleet.node import Node, OpenFault
from dgxcheck.fleet.node_names import folded
from dgxcheck.fleet.result import VERDICTS
from dgxcheck.output.fleet import words
from dgxcheck.output.fleet.report import Report
from dgxcheck.output.plain_text import lines, visible

_MOST = 10
"""Rows of a section without -v."""


def render(report: Report) -> str:
    """The summary line first; sections that have nothing to say are left out."""
    fleet = report.fleet
    most = None if report.verbose else _MOST
    return lines([
        f"{fleet.verdict.upper()}: {words.counts(fleet)}",
        *_verdicts(fleet),
        *_section("Faults", [_kind(kind) for kind in fleet.kinds], most),
        *_section("Found earlier, and not shown to be gone since",
                  [_unproven(*each) for each in words.unproven(fleet)], most),
        *_section("Off the median of the fleet",
                  [f"{each.node} {each.key}: {words.off(each)}" for each in fleet.outliers], most),
        *_section("Versions that differ", [_difference(each) for each in fleet.differences], None),
        *_section("Lowest scores", [
            f"{node.name}: {score:g} of 100 against {node.newest.group.profile}"
            for score, node in words.lowest_scores(fleet)
        ], 5),
        *_section("Not read", [f"{each.where}: {each.why}" for each in fleet.unread], most),
    ])  # fmt: skip


def _verdicts(fleet: Fleet) -> Iterator[str]:
    for word in VERDICTS:
        names = fleet.with_verdict(word)
        if names:
            yield visible(f"{word:<10}{len(names):>6}  {folded(names)}")
    if fleet.silent:
        yield visible(f"{'no result':<10}{len(fleet.silent):>6}  {folded(fleet.silent)}")


def _section(title: str, rows: Sequence[str], most: int | None) -> Iterator[str]:
    if not rows:
        return
    yield ""
    yield f"{title}:"
    for row in rows[:most]:
        yield visible(f"  {row}")
    if most is not None and len(rows) > most:
        yield f"  and {len(rows) - most} more; list them with -v"


def _kind(kind: Kind) -> str:
    one = len(kind.nodes) == 1
    what = words.example(kind)
    told = what if one else f"for example {what}"
    action = words.first_action(kind)
    do = f"; {words.COMMON}" if kind.common else f"; do: {action}" if action else ""
    return f"{kind.status} {kind.check} {folded(kind.nodes)} ({len(kind.nodes)}): {told}{do}"


def _unproven(node: Node, found: OpenFault) -> str:
    newest = node.newest
    return (
        f"{node.name}: {found.fault.key}, level {found.level}, {found.found_at}; the newest result is of level"
        f" {newest.level}, {newest.generated_at}"
    )


def _difference(difference: Difference) -> str:
    told = [f"{value or 'none'}: {folded(nodes)} ({len(nodes)})" for value, nodes in difference.nodes.items()]
    return f"{difference.name}: {'; '.join(told)}"
