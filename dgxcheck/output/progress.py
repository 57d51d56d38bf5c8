"""What runs now, as lines for a terminal: a measurement, a burn-in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dgxcheck.assessment.progress import HostNow
from dgxcheck.facts.missing import Json, is_number
from dgxcheck.measure.burn_in.stop_rules import BITS, grown
from dgxcheck.output.plain_text import columns, fitted, visible

_WIDE = 20
_GIB = 1 << 30


def bar(share: float) -> str:
    """``[#####---------------]``"""
    full = round(_WIDE * min(1.0, max(0.0, share)))
    return f"[{'#' * full}{'-' * (_WIDE - full)}]"


def clock(seconds: float) -> str:
    """``1:29:05``, ``4:07``"""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def host_line(now: HostNow | None) -> list[str]:
    """How busy the host is; empty before the first look."""
    if now is None:
        return []
    memory = f"{now.memory_available / _GIB:.1f} of {now.memory_total / _GIB:.1f} GiB memory available"
    return [f"host  CPUs {now.cpu_percent:.0f} % busy, load average {now.load:.1f}, {memory}"]


_NEXT = 2


class Measuring:
    """The steps of one run, and what they gave. Another thread may draw it."""

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)
        self._figures: dict[str, list[float]] = {}
        self._units: dict[str, str] = {}
        self._bad: dict[str, int] = {}
        self._now = ""
        self._done = 0
        self.host: HostNow | None = None

    def step(self, key: str, done: int) -> None:
        """The key that is measured now, and how many steps are done."""
        self._now, self._done = key, done

    def figure(self, key: str, fact: Json) -> None:
        """One more fact."""
        kind = _words(key).partition(" ")[0]
        if not isinstance(fact, dict) or "skipped" in fact or kind == "cuda":
            return
        value, unit = fact.get("value"), fact.get("unit")
        if is_number(value) and isinstance(unit, str):
            self._figures.setdefault(kind, []).append(float(value))
            self._units[kind] = unit
        elif "value" not in fact:
            self._bad[kind] = self._bad.get(kind, 0) + 1

    def lines(self, elapsed: float, width: int, height: int) -> list[str]:
        """No line longer than ``width``; ``elapsed`` seconds since the first step."""
        total = len(self._keys)
        repeated = self._now in self._keys and self._done >= total
        left = clock(elapsed / self._done * (total - self._done)) if 0 < self._done < total else "-:--"
        what = "measuring low figures again" if repeated else f"{min(self._done, total)} of {total} measured"
        lines = [f"{bar(self._done / total if total else 1.0)} {what}, {left} left"]
        lines += [f"now   {_words(self._now)}"] if self._now else ["now   starting CUDA"]
        place = self._keys.index(self._now) + 1 if self._now in self._keys else 0
        if coming := [_words(key) for key in self._keys[place : place + _NEXT]]:
            lines.append(f"next  {', '.join(coming)}")
        lines += host_line(self.host)
        return fitted([*lines, *columns(self._rows())[: max(0, height - len(lines) - 1)]], width)

    def _rows(self) -> list[tuple[str, str, str]]:
        rows = [
            (f"  {kind}", f"{len(values)} measured", f"{_range(values)} {self._units[kind]}")
            for kind, values in [*self._figures.items()]
        ]
        return rows + [(f"  {kind}", f"{number} failed", "") for kind, number in [*self._bad.items()]]


def _range(values: Sequence[float]) -> str:
    low, high = f"{min(values):.4g}", f"{max(values):.4g}"
    return low if low == high else f"{low} to {high}"


def _words(key: str) -> str:
    return visible(key.removeprefix("measure "))


_HEAD = ("GPU", "power", "temp", "SM clock", "throttle", "errors")
_ERRORS = {"dbe": "uncorrected", "sbe": "corrected", "replays": "PCIe replays"}
_EVENTS = 5
GpuReading = Mapping[str, Any]


class BurningIn:
    """The last sample of each GPU, and the last events. Another thread may draw it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._first: dict[str, GpuReading] = {}
        self._last: dict[str, GpuReading] = {}
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
        lines = [f"{bar(share)} {clock(self._elapsed)} under load, {left} left; turn {self._now}"]
        lines += [visible(self._worst) or "no problem found so far", *host_line(self.host)]
        rows = columns([_HEAD, *(self._cells(bdf) for bdf in [*self._last])]) if self._last else []
        room = max(2, height - len(lines) - 1)
        shown = rows if len(rows) <= room else [*rows[: room - 1], f"and {len(rows) - room + 1} more GPUs"]
        events = self._events[-max(0, room - len(shown)) :] if room > len(shown) else []
        return fitted([*lines, *shown, *events], width)

    def _cells(self, bdf: str) -> tuple[str, ...]:
        row, first = self._last[bdf], self._first[bdf]
        if row.get("lost"):
            return (bdf, "", "", "", "stopped responding", "")
        mask = int(row.get("reasons") or 0)
        reasons = ", ".join(name for bit, name in BITS.items() if mask & bit)
        new = {word: grown(first, row, name) for name, word in _ERRORS.items()}
        errors = ", ".join(f"{number} {word}" for word, number in new.items() if number)
        answered = any(number is not None for number in new.values())
        return (
            bdf, _number(row.get("power_w"), "W"), _number(row.get("temperature"), "°C"),
            _number(row.get("sm_clock"), "MHz"), reasons or ("-" if row.get("reasons") is not None else "?"),
            errors or ("-" if answered else "?"),
        )  # fmt: skip


def _number(value: Any, unit: str) -> str:
    return f"{value:.0f} {unit}" if isinstance(value, int | float) else "?"
