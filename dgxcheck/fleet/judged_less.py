"""Nodes that were judged by less than others alike: a check that did not run is no pass."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeVar

from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered, majority, median
from dgxcheck.fleet.node import LEVELS, Node
from dgxcheck.fleet.node_names import counted_order

Word = TypeVar("Word", bound=str)
Aspect = Literal["level", "profile", "dgxcheck", "coverage", "checks"]
LEAST = 3
"""Nodes alike; of fewer nothing is said."""
_COVERAGE = 0.05


class JudgedLess(Record, kw_only=False):
    """In what one node was judged otherwise than most alike."""

    node: str
    aspect: Aspect
    value: str
    """``quick``; empty for none; of ``checks`` their ids."""
    usual: str
    """Of most; empty for ``checks``."""

    @property
    def holds_back(self) -> bool:
        """Does a result of a machine that did not let itself be judged show that it is well?"""
        return self.aspect in ("coverage", "checks")


def judged_less(nodes: Iterable[Node]) -> tuple[JudgedLess, ...]:
    """By the newest results of nodes with the same GPUs; coverage and checks among those of one level."""
    alike = gathered((node.newest.group.model, node) for node in nodes)
    found = [less for its in alike.values() for less in _of_alike(its)]
    return tuple(sorted(found, key=lambda less: less.node))


def _of_alike(nodes: Sequence[Node]) -> Iterator[JudgedLess]:
    if len(nodes) < LEAST:
        return
    for node, level, usual in _unusual((node.name, node.newest.level) for node in nodes):
        if LEVELS.index(level) < LEVELS.index(usual):
            yield JudgedLess(node, "level", level, usual)
    for node, profile, other in _unusual((node.name, node.newest.group.profile) for node in nodes):
        yield JudgedLess(node, "profile", profile, other)
    for node, version, other in _unusual((node.name, node.newest.tool_version) for node in nodes):
        if counted_order(version) < counted_order(other):
            yield JudgedLess(node, "dgxcheck", version, other)
    for its in gathered((node.newest.level, node) for node in nodes).values():
        if len(its) >= LEAST:
            yield from _of_level(its)


def _of_level(nodes: Sequence[Node]) -> Iterator[JudgedLess]:
    covered = {node.name: node.newest.coverage for node in nodes if node.newest.coverage is not None}
    usual = median(covered.values()) if covered else 0.0
    for name, coverage in covered.items():
        if coverage < usual - _COVERAGE:
            yield JudgedLess(name, "coverage", f"{100 * coverage:.0f} %", f"{100 * usual:.0f} %")
    skipped = Counter(check for node in nodes for check in node.newest.unread)
    for node in nodes:
        if own := sorted(check for check in node.newest.unread if 2 * skipped[check] <= len(nodes)):
            yield JudgedLess(node.name, "checks", ", ".join(own), "")


def _unusual(named: Iterable[tuple[str, Word]]) -> Iterator[tuple[str, Word, Word]]:
    """Nodes with another value than more than half of all, and that value."""
    of_node = dict(named)
    usual = majority(of_node.values())
    if usual is not None:
        yield from ((name, value, usual) for name, value in of_node.items() if value != usual)
