"""How much of what was expected a figure reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.facts.typical import median
from dgxcheck.readiness.figures import Figure
from dgxcheck.topology.model import Topology

LOW = 0.9
"""Below this share a figure is shown with its percentage."""
_FEWEST = 4
"""Pairs that are joined alike; of fewer the median says little."""
_LESS_IS_BETTER = ("latency", "latency-off", "latency-sm")


def share(figure: Figure) -> float | None:
    """1 for all of it; None where nothing is expected or nothing was measured. Of a latency the inverse."""
    number, expected = figure.row.number, figure.expected
    if number is None or not expected or number < 0:
        return None
    if figure.row.kind in _LESS_IS_BETTER:
        return expected / number if number else None
    return number / expected


def alike(figures: Sequence[Figure], topology: Topology) -> Mapping[tuple[str, str, str], float]:
    """Of pairs without an expected figure the share of the median of those that are joined alike, by kind and ends."""
    groups: dict[tuple[str, str], list[Figure]] = {}
    devices = {device.name: device for device in topology.gpus}
    for figure in figures:
        a, b = devices.get(figure.a), devices.get(figure.b)
        if a is not None and b is not None and a is not b and figure.expected is None and figure.row.number:
            groups.setdefault((figure.row.kind, topology.link(a, b).label), []).append(figure)
    found = {}
    for (kind, _), same in groups.items():
        if len(same) >= _FEWEST:
            usual = median(figure.row.number or 0.0 for figure in same)
            for figure in same:
                number = figure.row.number or usual
                found[kind, figure.a, figure.b] = usual / number if kind in _LESS_IS_BETTER else number / usual
    return found


def percent_of(of: float) -> str:
    """``51%``"""
    return f"{100 * of:.0f}%"
