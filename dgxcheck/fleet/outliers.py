"""Figures that are off the fleet's median."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence

from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import median
from dgxcheck.fleet.node import LikeMachines

MADS, SHARE, LEAST = 8.0, 0.05, 8
"""How far off a figure is: more than 8 median absolute deviations, scaled to sigma, and more than 5 %; of fewer than 8
nodes nothing is said. On 10,000 machines with 1 % noise no healthy one is that far off."""
_SIGMA = 1.4826
"""Standard deviation of a normal distribution in units of its median absolute deviation."""
_INTERVALS = 60
_LEAST_MEDIAN = 1e-9
"""Shares of less mean nothing."""


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


class FleetFigure(Record, kw_only=False):
    """One figure of all alike nodes, of which some are off."""

    key: str
    group: LikeMachines
    median: float
    bound: float
    """How far off the median a node may be."""
    low: float
    """The lowest of all nodes."""
    high: float
    counts: tuple[int, ...]
    """Nodes by value: intervals of equal width from the lowest to the highest."""
    outliers: tuple[Outlier, ...]
    """The farthest off first."""


class FigureColumns:
    """The figures of all results, a column per group and key: numbers, not objects."""

    def __init__(self) -> None:
        self._columns: dict[LikeMachines, dict[str, tuple[array[int], array[float]]]] = {}

    def add(self, number: int, group: LikeMachines, figures: Mapping[str, float]) -> None:
        """The figures of result ``number``."""
        columns = self._columns.setdefault(group, {})
        for key, value in figures.items():
            if (column := columns.get(key)) is None:
                column = columns[key] = (array("L"), array("d"))
            column[0].append(number)
            column[1].append(value)

    def figures(self, nodes: Mapping[int, str]) -> tuple[FleetFigure, ...]:
        """Those in which a node is off, of the results named in ``nodes``; the farthest off first."""
        found = []
        for group, columns in self._columns.items():
            for key, column in columns.items():
                kept = [(nodes[number], value) for number, value in zip(*column, strict=True) if number in nodes]
                if (figure := _figure(key, group, kept)) is not None:
                    found.append(figure)
        return tuple(sorted(found, key=lambda each: (_by_distance(each.outliers[0]), each.group.gpus)))


def _by_distance(outlier: Outlier) -> tuple[float, str, str]:
    return -abs(outlier.off), outlier.node, outlier.key


def farthest(figures: Iterable[FleetFigure]) -> tuple[Outlier, ...]:
    """The outliers of all figures, the farthest off first."""
    return tuple(sorted((outlier for figure in figures for outlier in figure.outliers), key=_by_distance))


def _figure(key: str, group: LikeMachines, of_nodes: Sequence[tuple[str, float]]) -> FleetFigure | None:
    """None where no node is off."""
    values = [value for _, value in of_nodes]
    if len(values) < LEAST or abs(middle := median(values)) < _LEAST_MEDIAN:
        return None
    off = [abs(value - middle) for value in values]
    bound = max(MADS * _SIGMA * median(off), SHARE * abs(middle))
    if max(off) <= bound:
        return None
    outliers = [
        Outlier(node, key, value, middle, len(values))
        for (node, value), distance in zip(of_nodes, off, strict=True)
        if distance > bound
    ]
    low, high = min(values), max(values)
    return FleetFigure(key, group, middle, bound, low, high, _counts(values, low, high),
                  tuple(sorted(outliers, key=_by_distance)))  # fmt: skip


def _counts(values: Sequence[float], low: float, high: float) -> tuple[int, ...]:
    counts = [0] * _INTERVALS
    for value in values:
        counts[min(int((value - low) / (high - low) * _INTERVALS), _INTERVALS - 1)] += 1
    return tuple(counts)
