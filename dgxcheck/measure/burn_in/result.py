"""The result of one GPU of a burn-in, as the fact ``measure burn-in BDF``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from dgxcheck.facts.missing import Json
from dgxcheck.facts.typical import median
from dgxcheck.measure.burn_in.stop_rules import BITS, SlowdownThresholds, grown

FIFTHS = 5
SIGNED = ("tool", "how")
_NO_RATES = ("wrong", "checked", "first")
SLOWDOWN, HELD = 0x8, 0x8 | 0x40 | 0x80


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


class BurnInResult:
    """Grows with every turn of the load and every sample; its size does not grow with the samples."""

    def __init__(self, bdf: str) -> None:
        self.bdf = bdf
        self.start: Mapping[str, Any] = {}
        """The fact of the start of the load; it never ran if this has ``skipped``, ``failed`` or ``missing``."""
        self.ended = ""
        """Why the load ended by itself; empty if it did not."""
        self.turn_ended = ""
        """The turn in which it ended."""
        self.with_peer = ""
        """Why peer traffic was given up; empty if it was not."""
        self.wrong = 0
        self.first: Mapping[str, Any] = {}
        """The sample before the load."""
        self._last: Mapping[str, Any] = {}
        self._wrong_in: Counter[str] = Counter()
        self._rates: dict[str, list[float]] = {}
        self._cycles = 0
        self._looks = 0
        self._mask = 0
        self._reasons: Counter[str] = Counter()
        self._clocks: Counter[int] = Counter()
        self._most: dict[str, float] = {}
        self._curve = Curve()

    def turn(self, name: str, fact: Mapping[str, Any]) -> int:
        """Record the fact of a turn; returns its number of wrong words."""
        self._cycles += name == "power" and "skipped" not in fact
        wrong = int(fact.get("wrong") or 0)
        self.wrong += wrong
        if wrong:
            self._wrong_in[name] += wrong
        for kind, value in fact.items():
            if isinstance(value, float) and kind not in _NO_RATES:
                self._rates.setdefault(kind, []).append(value)
        return wrong

    def sample(self, row: Mapping[str, Any], settled: bool) -> None:
        """Record a sample; clocks count once they have ``settled`` under load."""
        self._looks += 1
        self._last = row
        self._curve.sample(row)
        mask = int(row.get("reasons") or 0)
        # 0x8 is also set while clocks change: without 0x40 or 0x80 it counts from the second sample in a row
        fleeting = mask & HELD == SLOWDOWN and not self._mask & SLOWDOWN
        self._reasons.update(name for bit, name in BITS.items() if mask & bit and not (bit == SLOWDOWN and fleeting))
        self._mask = mask
        if settled and row.get("sm_clock") is not None:
            self._clocks[int(row["sm_clock"])] += 1
        for name in ("temperature", "power_w"):
            if row.get(name) is not None:
                self._most[name] = max(self._most.get(name, row[name]), row[name])

    def fact(self, seconds: float, limits: SlowdownThresholds) -> Json:
        """The fact after ``seconds`` under load."""
        if "value" not in self.start:
            never = {"skipped": "dependency-failed", "detail": "the burn-in stopped before this load began"}
            return {**(self.start or never)}
        clocks = sorted(self._clocks.elements())
        return {
            "value": round(seconds, 1),
            "unit": "s",
            "method": f"{', '.join(self.start.get('turns', []))} in turn",
            **{name: self.start[name] for name in SIGNED if name in self.start},
            "cycles": self._cycles,
            "peer": self.start.get("peer"),
            "memory_bytes": self.start["value"],
            "wrong": self.wrong,
            "wrong_in": dict(self._wrong_in),
            "sm_clock": {"min": clocks[0], "median": median(clocks)} if clocks else None,
            "throttled": {name: round(times / self._looks, 4) for name, times in self._reasons.items()},
            "temperature_max": self._most.get("temperature"),
            "slowdown_at": limits.degrees.get(self.bdf),
            "power_max": self._most.get("power_w"),
            **{name: grown(self.first, self._last, name) for name in ("dbe", "sbe", "replays")},
            "drift": {kind: [*both] for kind, rates in self._rates.items() if (both := drift(rates)) is not None},
            "looks": self._looks,
            "curve": self._curve.fact(seconds),
            "ended": self.ended or None,
            "turn_ended": self.turn_ended or None,
            "with_peer": self.with_peer or None,
        }


def drift(rates: Sequence[float]) -> tuple[float, float] | None:
    """Medians of the first and the last fifth of the rates; None if there are fewer than five."""
    part = len(rates) // FIFTHS
    return (round(median(rates[:part]), 3), round(median(rates[-part:]), 3)) if part else None
