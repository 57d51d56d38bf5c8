"""How many GPUs and HCAs machines with the same GPUs have, and which have another number."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.node import Node

LEAST = 8
"""Nodes; of fewer nothing is said."""
RARE_SHARE = 0.1
"""A number that fewer of the nodes have, or one alone, is none that somebody bought: a device never came up; such a
version none that a roll-out left."""


class CountDifference(Record, kw_only=False):
    """A number of devices that few of the machines alike have."""

    kind: str
    """``GPU``, ``HCA``"""
    profile: str
    """Empty without a reference machine."""
    model: str
    """Of the GPUs."""
    nodes: Mapping[int, tuple[str, ...]]
    """By number, the most common first."""

    @property
    def rare(self) -> tuple[str, ...]:
        """Nodes with a number that few have."""
        return rare(self.nodes)


def rare(nodes: Mapping[int, Sequence[str]] | Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """Of nodes by value those whose value few have; none where most have one of their own."""
    total = sum(map(len, nodes.values()))
    few = [name for names in nodes.values() if len(names) == 1 or len(names) < RARE_SHARE * total for name in names]
    return tuple(few) if total >= LEAST and len(few) <= total / 2 else ()


def count_differences(nodes: Iterable[Node]) -> tuple[CountDifference, ...]:
    """Of the newest result of each node; what was not counted there is not compared."""
    found = gathered(
        ((kind, node.newest.group.profile, node.newest.group.model), (number, node.name))
        for node in nodes
        for kind, number in node.newest.devices.items()
    )
    differences = []
    for (kind, profile, model), numbered in sorted(found.items()):
        by_number = gathered(numbered)
        common_first = sorted(by_number.items(), key=lambda each: (-len(each[1]), -each[0]))
        differences.append(CountDifference(kind, profile, model, {
            number: tuple(names) for number, names in common_first
        }))  # fmt: skip
    return tuple(each for each in differences if each.rare)
