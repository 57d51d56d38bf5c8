"""Sentences about a fleet that every format for people has."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.fleet.judge import Fleet, Kind
from dgxcheck.fleet.node import Node, OpenFault
from dgxcheck.fleet.outliers import Outlier
from dgxcheck.fleet.result import VERDICTS

COMMON = "so many nodes have one reason: look at image, driver, settings and profile first"


def counts(fleet: Fleet) -> str:
    """``16 nodes: 1 fail, 15 pass``."""
    found = [(len(fleet.with_verdict(word)), word) for word in VERDICTS]
    told = [f"{count} {word}" for count, word in found if count]
    told += [f"{len(fleet.silent)} without a result"] if fleet.silent else []
    total = len(fleet.nodes) + len(fleet.silent)
    return f"{total} node{'s' * (total != 1)}: {', '.join(told) or 'no result'}"


def example(kind: Kind) -> str:
    """What is wrong at the first of its nodes."""
    first = next(iter(kind.nodes.values())).fault
    return f"{first.subject}: {first.message}" if first.subject else first.message


def first_action(kind: Kind) -> str:
    """At the first of its nodes; empty where none is known, and where the nodes have one reason."""
    return "" if kind.common else next(iter(kind.nodes.values())).fault.action


def unproven(fleet: Fleet) -> Iterator[tuple[Node, OpenFault]]:
    """Faults that the newest result of a node neither reports nor shows to be gone."""
    return ((node, each) for node in fleet.nodes.values() for each in node.unproven)


def off(outlier: Outlier) -> str:
    """A value, and how far it is from the median."""
    value, middle = number(outlier.value), number(outlier.median)
    return f"{value}, median {middle} of {outlier.nodes} nodes ({100 * outlier.off:+.0f} %)"


def number(value: float) -> str:
    """Four digits that count, and all before the point."""
    return f"{value:.0f}" if abs(value) >= 1e4 else f"{value:.4g}"


def lowest_scores(fleet: Fleet) -> list[tuple[float, Node]]:
    """Below 100, the lowest first."""
    scored = [(node.newest.score, name, node) for name, node in fleet.nodes.items()
              if node.newest.score is not None and node.newest.score < 100]  # fmt: skip
    return [(score, node) for score, _, node in sorted(scored, key=lambda each: each[:2])]
