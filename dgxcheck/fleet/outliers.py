"""Figures that are off the fleet's median."""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from dgxcheck.facts.record import Record, replace
from dgxcheck.facts.typical import gathered, median
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
    another_driver: bool = False
    """Is the median one of nodes with all drivers, as too few have its own?"""

    @property
    def off(self) -> float:
        """By which share of the median: -0.2 is a fifth below."""
        return (self.value - self.median) / abs(self.median)


class NodeOutliers(Record, kw_only=False):
    """The figures of one check that are off at one node, the farthest off first."""

    node: str
    check: str
    figures: tuple[Outlier, ...]


class FleetFigure(Record, kw_only=False):
    """One figure of all alike nodes, of which some are off."""

    key: str
    group: LikeMachines
    """With the drivers of all nodes that are compared."""
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
        alike = gathered(((group.profile, group.gpus), group) for group in self._columns)
        found = [figure for groups in alike.values() for figure in self._of_alike(groups, nodes)]
        return tuple(sorted(found, key=lambda each: (_by_distance(each.outliers[0]), each.group.gpus)))

    def _of_alike(self, groups: Sequence[LikeMachines], nodes: Mapping[int, str]) -> Iterator[FleetFigure]:
        """Of machines that differ in their driver at most."""
        for key, with_it in gathered((key, group) for group in groups for key in self._columns[group]).items():
            of_nodes = {group: self._kept(group, key, nodes) for group in with_it}
            few = {node for kept in of_nodes.values() if len(kept) < LEAST for node, _ in kept}
            figures = [_figure(key, group, kept) for group, kept in of_nodes.items()]
            if few and len(with_it) > 1:
                drivers = ", ".join(sorted(group.driver for group, kept in of_nodes.items() if kept))
                everyone = [each for kept in of_nodes.values() for each in kept]
                figures.append(_figure(key, replace(with_it[0], driver=drivers), everyone, few))
            yield from (figure for figure in figures if figure is not None)

    def _kept(self, group: LikeMachines, key: str, nodes: Mapping[int, str]) -> list[tuple[str, float]]:
        column = self._columns[group][key]
        return [(nodes[number], value) for number, value in zip(*column, strict=True) if number in nodes]


def _by_distance(outlier: Outlier) -> tuple[float, str, str]:
    return -abs(outlier.off), outlier.node, outlier.key


def farthest(figures: Iterable[FleetFigure]) -> tuple[Outlier, ...]:
    """The outliers of all figures, the farthest off first."""
    return tuple(sorted((outlier for figure in figures for outlier in figure.outliers), key=_by_distance))


def by_node_and_check(outliers: Iterable[Outlier]) -> list[NodeOutliers]:
    """In the order of ``farthest``, but what is farthest off at each node before all else: no node hides another."""
    found = gathered(((each.node, each.key.partition("/")[0]), each) for each in outliers)
    rows = [NodeOutliers(node, check, tuple(figures)) for (node, check), figures in found.items()]
    own = gathered((row.node, row) for row in rows)
    return sorted(rows, key=lambda row: row is not own[row.node][0])


def _figure(
    key: str, group: LikeMachines, of_nodes: Sequence[tuple[str, float]], few: Collection[str] = ()
) -> FleetFigure | None:
    """None where no node is off, of ``few`` where it names some: those with a driver that too few have."""
    values = [value for _, value in of_nodes]
    if len(values) < LEAST or abs(middle := median(values)) < _LEAST_MEDIAN:
        return None
    off = [abs(value - middle) for value in values]
    bound = max(MADS * _SIGMA * median(off), SHARE * abs(middle))
    outliers = [
        Outlier(node, key, value, middle, len(values), bool(few))
        for (node, value), distance in zip(of_nodes, off, strict=True)
        if distance > bound and (not few or node in few)
    ]
    if not outliers:
        return None
    low, high = min(values), max(values)
    return FleetFigure(key, group, middle, bound, low, high, _counts(values, low, high),
                  tuple(sorted(outliers, key=_by_distance)))  # fmt: skip


def _counts(values: Sequence[float], low: float, high: float) -> tuple[int, ...]:
    counts = [0] * _INTERVALS
    for value in values:
        counts[min(int((value - low) / (high - low) * _INTERVALS), _INTERVALS - 1)] += 1
    return tuple(counts)
