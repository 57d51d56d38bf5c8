"""A burn-in as it runs: a row per GPU with power, temperature, clock, throttle reasons and new errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dgxcheck.assessment.progress import HostNow
from dgxcheck.facts.missing import Json
from dgxcheck.measure.burn_in.stop_rules import BITS, grown
from dgxcheck.output.plain_text import columns, visible
from dgxcheck.output.progress.bar import bar, clock, fitted, host_line

_HEAD = ("GPU", "power", "temp", "SM clock", "throttle", "errors")
_ERRORS = {"dbe": "uncorrected", "sbe": "corrected", "replays": "PCIe replays"}
_EVENTS = 5
Row = Mapping[str, Any]


class BurningIn:
    """The last sample of each GPU, and the last events. Another thread may draw it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._first: dict[str, Row] = {}
        self._last: dict[str, Row] = {}
        self._events: list[str] = []
        self._now, self._elapsed, self._worst = "opening CUDA", 0.0, ""
        self.host: HostNow | None = None

    def moment(self, elapsed: float, step: str, worst: str) -> None:
        """Seconds under load, the turn, the worst event so far."""
        self._elapsed, self._now, self._worst = elapsed, step, worst

    def event(self, members: Mapping[str, Json]) -> None:
        """A sample of all GPUs, or an event."""
        gpus = members.get("gpus")
        if members.get("event") != "sample" or not isinstance(gpus, dict):
            at = members.get("under_load_s")
            seconds = clock(at) if isinstance(at, int | float) else "?"
            words = (seconds, members.get("gpu"), members.get("text"))
            self._events.append(visible(" ".join(str(word) for word in words if word)))
            del self._events[:-_EVENTS]
            return
        for bdf, row in gpus.items():
            if isinstance(row, dict):
                self._first.setdefault(bdf, row)
                self._last[bdf] = row

    def lines(self, width: int, height: int) -> list[str]:
        """No line longer than ``width``."""
        share = self._elapsed / self._seconds if self._seconds else 1.0
        left = clock(self._seconds - self._elapsed)
        told = [f"{bar(share)} {clock(self._elapsed)} under load, {left} left; turn {self._now}"]
        told += [visible(self._worst) or "no problem found so far", *host_line(self.host)]
        rows = columns([_HEAD, *(self._cells(bdf) for bdf in [*self._last])]) if self._last else []
        room = max(2, height - len(told) - 1)
        shown = rows if len(rows) <= room else [*rows[: room - 1], f"and {len(rows) - room + 1} more GPUs"]
        events = self._events[-max(0, room - len(shown)) :] if room > len(shown) else []
        return fitted([*told, *shown, *events], width)

    def _cells(self, bdf: str) -> tuple[str, ...]:
        row, first = self._last[bdf], self._first[bdf]
        if row.get("lost"):
            return (bdf, "", "", "", "stopped responding", "")
        mask = int(row.get("reasons") or 0)
        reasons = ", ".join(name for bit, name in BITS.items() if mask & bit)
        new = {word: grown(first, row, name) for name, word in _ERRORS.items()}
        errors = ", ".join(f"{number} {word}" for word, number in new.items() if number)
        known = any(number is not None for number in new.values())
        return (
            bdf, _number(row.get("power_w"), "W"), _number(row.get("temperature"), "°C"),
            _number(row.get("sm_clock"), "MHz"), reasons or ("-" if row.get("reasons") is not None else "?"),
            errors or ("-" if known else "?"),
        )  # fmt: skip


def _number(value: Any, unit: str) -> str:
    return f"{value:.0f} {unit}" if isinstance(value, int | float) else "?"
