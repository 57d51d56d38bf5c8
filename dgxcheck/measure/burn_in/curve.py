"""Temperature, power and clock of a GPU over time, in a bounded number of points however long a burn-in is."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dgxcheck.facts.missing import Json

MOST = 120
"""Points; beyond that, each two that follow each other are replaced by their mean."""
QUANTITIES = ("temperature", "power_w", "sm_clock")


class Curve:
    """The samples of one GPU, each point the mean of as many samples as of every other."""

    def __init__(self) -> None:
        self._points: list[dict[str, float]] = []
        self._open: list[Mapping[str, float]] = []
        self._each = 1
        """Samples of one point."""

    def sample(self, row: Mapping[str, Any]) -> None:
        """Add a sample; what is not a number is left out of the mean."""
        self._open.append({name: float(row[name]) for name in QUANTITIES if isinstance(row.get(name), int | float)})
        if len(self._open) == self._each:
            self._points.append(_mean(self._open))
            self._open = []
        if len(self._points) == MOST:
            self._points = [_mean(self._points[place : place + 2]) for place in range(0, MOST, 2)]
            self._each *= 2

    def fact(self, seconds: float) -> Json:
        """``at`` in seconds since the start, and a list as long for each quantity; None where there is no value."""
        points = [*self._points, *([_mean(self._open)] if self._open else [])]
        step = seconds / len(points) if points else 0.0
        at: list[Json] = [round((place + 0.5) * step, 1) for place in range(len(points))]
        curves: dict[str, Json] = {
            name: [round(point[name], 1) if name in point else None for point in points] for name in QUANTITIES
        }
        return {"at": at, **curves}


def _mean(rows: list[Mapping[str, float]] | list[dict[str, float]]) -> dict[str, float]:
    names = {name for row in rows for name in row}
    return {name: sum(row[name] for row in rows if name in row) / sum(name in row for row in rows) for name in names}
