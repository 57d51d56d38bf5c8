"""Figures that are off the fleet's median."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from dgxcheck.facts.record import Record
from dgxcheck.fleet.result import Group

MADS, SHARE, LEAST = 8.0, 0.05, 8
"""How far off a figure is: more than 8 median absolute deviations, scaled to sigma, and more than 5 %; of fewer than 8
nodes nothing is said. On 10,000 machines with 1 % noise no healthy one is that far off."""
_SIGMA = 1.4826
"""Standard deviation of a normal distribution in units of its median absolute deviation."""


class Outlier(Record, kw_only=False):
    """One figure of one node."""

    node: str
    key: str
    value: float
    median: float
    nodes: int
    """How many nodes the median is of."""

    @property
    def off(self) -> float:
        """By which share of the median: -0.2 is a fifth below."""
        return (self.value - self.median) / abs(self.median)


class Columns:
    """The figures of all results, a column per group and key: numbers, not objects."""

    def __init__(self) -> None:
        self._columns: dict[Group, dict[str, tuple[array[int], array[float]]]] = {}

    def add(self, number: int, group: Group, figures: Mapping[str, float]) -> None:
        """The figures of result ``number``."""
        columns = self._columns.setdefault(group, {})
        for key, value in figures.items():
            column = columns.get(key)
            if column is None:
                column = columns[key] = (array("L"), array("d"))
            column[0].append(number)
            column[1].append(value)

    def outliers(self, nodes: Mapping[int, str]) -> tuple[Outlier, ...]:
        """Of the results named in ``nodes``, the farthest off first."""
        found = [
            outlier
            for columns in self._columns.values()
            for key, (numbers, values) in columns.items()
            for outlier in _outliers(key, *_of(nodes, numbers, values))
        ]
        return tuple(sorted(found, key=lambda each: (-abs(each.off), each.node, each.key)))


def _of(nodes: Mapping[int, str], numbers: array[int], values: array[float]) -> tuple[list[str], list[float]]:
    kept = [(nodes[number], value) for number, value in zip(numbers, values, strict=True) if number in nodes]
    return [node for node, _ in kept], [value for _, value in kept]


def _outliers(key: str, nodes: Sequence[str], values: Sequence[float]) -> Iterator[Outlier]:
    if len(values) < LEAST:
        return
    middle = median(values)
    if not middle:
        return
    off = [abs(value - middle) for value in values]
    bound = max(MADS * _SIGMA * median(off), SHARE * abs(middle))
    if max(off) <= bound:
        return
    for node, value, distance in zip(nodes, values, off, strict=True):
        if distance > bound:
            yield Outlier(node, key, value, middle, len(values))
