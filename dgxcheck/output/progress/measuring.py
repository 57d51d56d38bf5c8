"""Measurements as they come: what runs now and next, the time left, and the figures so far by kind."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.assessment.progress import HostNow
from dgxcheck.facts.missing import Json
from dgxcheck.output.plain_text import columns, visible
from dgxcheck.output.progress.bar import bar, clock, fitted, host_line

_MEASURE = "measure "
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
        if isinstance(value, int | float) and not isinstance(value, bool) and isinstance(unit, str):
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
        told = [f"{bar(self._done / total if total else 1.0)} {what}, {left} left"]
        told += [f"now   {_words(self._now)}"] if self._now else ["now   starting CUDA"]
        place = self._keys.index(self._now) + 1 if self._now in self._keys else 0
        if coming := [_words(key) for key in self._keys[place : place + _NEXT]]:
            told.append(f"next  {', '.join(coming)}")
        told += host_line(self.host)
        return fitted([*told, *columns(self._rows())[: max(0, height - len(told) - 1)]], width)

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
    return visible(key.removeprefix(_MEASURE))
