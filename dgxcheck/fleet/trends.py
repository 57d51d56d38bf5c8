"""Counters and temperatures of parts that will reach their limit, with the date.

The slope is that of Theil and Sen, the median over all pairs of readings; that it is one is judged by the test of Mann
and Kendall. Temperatures are compared at like power alone. A counter that falls was set to 0: what was before is left.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from math import sqrt

from dgxcheck.facts.inventory import Part
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import median
from dgxcheck.fleet.part_history import DAY_S, PartHistory

HORIZON_DAYS = 180.0
"""What lies farther ahead is not foretold."""
_MOST = 64
"""Readings of a gauge that are kept; of more every second is dropped."""
_LEAST, _LEAST_DAYS = 6, 5.0
_SIGMAS = 3.3
"""Of the statistic of Mann and Kendall; by chance one gauge in 1,000 has as much, either way."""
_LIKE_POWER = 0.1
_WIDTH = 4


class Trend(Record):
    part: Part
    place: tuple[str, str]
    gauge: str
    first_s: float
    last_s: float
    first: float
    last: float
    limit: float
    per_day: float
    readings: int
    reached_s: float
    """When it will be at its limit."""


class Gauges:
    """The readings of all gauges, by serial number and name; in any order of time."""

    def __init__(self) -> None:
        self._readings: dict[tuple[str, str], array[float]] = {}

    def add(self, at_s: float, parts: Iterable[Part]) -> None:
        for part in parts:
            for name, values in part.gauges.items():
                readings = self._readings.setdefault((part.serial, name), array("d"))
                readings.extend((at_s, *values, *(0.0,) * (_WIDTH - 1 - len(values))))
                if len(readings) >= 2 * _MOST * _WIDTH:
                    kept = [value for row in sorted(_rows(readings))[::2] for value in row]
                    self._readings[part.serial, name] = array("d", kept)

    def trends(self, parts: Mapping[str, PartHistory]) -> tuple[Trend, ...]:
        """Those that reach their limit, the first to do so first."""
        found = (
            _trend(parts[serial], name, sorted(_rows(readings)))
            for (serial, name), readings in self._readings.items()
            if serial in parts
        )
        return tuple(sorted((trend for trend in found if trend is not None), key=lambda trend: trend.reached_s))


def _rows(readings: array[float]) -> Iterator[tuple[float, ...]]:
    return zip(*(readings[column::_WIDTH] for column in range(_WIDTH)), strict=True)


def _trend(history: PartHistory, gauge: str, rows: list[tuple[float, ...]]) -> Trend | None:
    load = rows[-1][3]
    if load:
        rows = [row for row in rows if abs(row[3] - load) <= _LIKE_POWER * load]
    else:
        falls = [number for number, (row, after) in enumerate(pairwise(rows)) if after[1] < row[1]]
        rows = rows[falls[-1] + 1 :] if falls else rows
    first, last = rows[0], rows[-1]
    if len(rows) < _LEAST or last[0] - first[0] < _LEAST_DAYS * DAY_S or first[1] == last[1]:
        return None
    pairs = [(a, b) for number, a in enumerate(rows) for b in rows[number + 1 :] if b[0] > a[0]]
    slope = median([(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairs])
    rises = sum((b[1] > a[1]) - (b[1] < a[1]) for a, b in pairs)
    count, left = len(rows), last[2] - last[1]
    significant = abs(rises) >= _SIGMAS * sqrt(count * (count - 1) * (2 * count + 5) / 18)
    if not significant or slope * left <= 0 or left / slope > HORIZON_DAYS * DAY_S:
        return None
    return Trend(
        part=history.part, place=history.stays[-1].place, gauge=gauge, first_s=first[0], last_s=last[0],
        first=first[1], last=last[1], limit=last[2], per_day=slope * DAY_S, readings=count,
        reached_s=last[0] + left / slope,
    )  # fmt: skip
