"""A simulated year of a fleet: nodes that fail as all do, lemons, nodes that were mended, bad parts and bad slots that
technicians took for each other."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from dgxcheck.facts.inventory import Part
from dgxcheck.fleet.document import SharedStrings, result_of
from dgxcheck.fleet.history import Visit
from dgxcheck.fleet.part_history import DAY_S

BEGIN_S = 1_760_000_000.0
SLOTS = tuple(f"0000:{number:02x}:00.0" for number in (6, 7, 10, 11, 133, 134, 137, 138))
WORDS = {"ecc-uncorrected": "ecc.volatile", "link-narrow": "pcie.width", "gpu-lost": "gpu.lost", "xid": "kernel.xid"}
Place = tuple[str, int]


class Truth(NamedTuple):
    lemons: dict[str, float]
    """By node, how many times as often it fails."""
    cured: set[str]
    parts: dict[str, str]
    """By serial number of a bad GPU that was moved, its fault."""
    slots: dict[Place, str]
    """By place that kept its fault with another GPU."""


class Year:
    """Results of each node once a day; faults stay until somebody mends them."""

    def __init__(self, nodes: int, days: int, seed: int, rate: float = 1.0, lemons: tuple[float, ...] = (),
                 cured: int = 0, bad: int = 0, moved: int = 0, every: float = 6.0) -> None:  # fmt: skip
        self.draw = draw = random.Random(seed)
        self.days, self.rate = days, rate / 365
        self.names = [f"dgx{number:03}" for number in range(nodes)]
        self.at = {(name, slot): f"{number:06}{slot}" for number, name in enumerate(self.names) for slot in range(8)}
        chosen = draw.sample(self.names, len(lemons) + cured)
        self.truth = Truth(dict(zip(chosen, lemons, strict=False)), set(chosen[len(lemons) :]), {}, {})
        self.bad: dict[str | Place, str] = {}
        """Fault that keeps coming up, by serial number or place."""
        self.every = every
        self.moves: dict[int, list[tuple[Place, Place, bool]]] = {}
        """By day, places whose GPUs change places; or the first gets a new one."""
        for number in range(bad):
            self._plant(number)
        for _ in range(moved):  # of GPUs that nothing is wrong with
            day, a, b = draw.randrange(30, days - 30), self._place(), self._place()
            self.moves.setdefault(day, []).append((a, b, False))
        self.open: dict[Place, dict[str, int]] = {}

    def _place(self) -> Place:
        while True:
            place = self.draw.choice(self.names), self.draw.randrange(8)
            if place not in self.truth.slots and self.at[place] not in self.truth.parts:
                return place

    def _plant(self, number: int) -> None:
        place, word = self._place(), self.draw.choice([*WORDS])
        other = self._place()
        while other == place:
            other = self._place()
        day = self.draw.randrange(self.days // 4, self.days // 2)
        if number % 2:
            self.truth.parts[self.at[place]] = self.bad[self.at[place]] = word
            self.moves.setdefault(day, []).append((place, other, False))
        else:
            self.truth.slots[place] = self.bad[place] = word
            self.moves.setdefault(day, []).append((place, other, number % 4 == 0))

    def visits(self) -> Iterator[Visit]:
        """In the order of time."""
        for day in range(self.days):
            for a, b, new in self.moves.get(day, ()):
                self.at[a], self.at[b] = (f"new{day:03}{a[0]}{a[1]}", self.at[b]) if new else (self.at[b], self.at[a])
                self.open.pop(a, None), self.open.pop(b, None)
            for name in self.names:
                self._break(name, day)
                yield self._visit(name, BEGIN_S + day * DAY_S + self.draw.random() * 3600)

    def _break(self, name: str, day: int) -> None:
        draw = self.draw
        rate = self.rate * self.truth.lemons.get(name, 1)
        rate *= 10 if name in self.truth.cured and day < 0.4 * self.days else 1
        if draw.random() < rate:
            faults = self.open.setdefault((name, draw.randrange(8)), {})
            faults[draw.choice([*WORDS])] = 1 + int(draw.expovariate(1 / 3))
        for slot in range(8):
            word = self.bad.get(self.at[name, slot]) or self.bad.get((name, slot))
            if word is not None and draw.random() < 1 / self.every:
                self.open.setdefault((name, slot), {})[word] = 1 + int(draw.expovariate(1))

    def _visit(self, name: str, at_s: float) -> Visit:
        found = []
        for slot in range(8):
            faults = self.open.get((name, slot), {})
            for word, left in [*faults.items()]:
                found.append((word, slot))
                faults[word] = left - 1
                if not left - 1:
                    del faults[word]
        result = _result(name, tuple(found))
        return Visit(at_s=at_s, result=result, boot="", parts=_parts(tuple(self.at[name, slot] for slot in range(8))))


@cache
def _parts(serials: tuple[str, ...]) -> tuple[Part, ...]:
    return tuple(Part("gpu", serial, SLOTS[slot], "A100") for slot, serial in enumerate(serials))


def document(name: str, found: tuple[tuple[str, int], ...], date: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    """As ``health --format jsonl`` writes it, with the checks that can fail here."""
    wrong = {f"{WORDS[word]}/{SLOTS[slot]}": word for word, slot in found}
    keys = {f"{check}/{slot}" for check in WORDS.values() for slot in SLOTS}
    return {
        "schema": "dgxcheck/result/1", "generated_at": date, "host": name, "boot_id": "b", "source": {"kind": "live"},
        "level": "default", "profile": "dgx-a100", "gpus": {"A100": 8}, "versions": {"driver": ["570.1"]},
        "verdict": "fail" if wrong else "pass", "score": None, "coverage": None, "skipped": {}, "causes": [],
        "passed": dict.fromkeys(sorted(keys - wrong.keys())),
        "found": [{"key": key, "status": "fail", "fault": word, "subject": "GPU", "message": word, "measured": None,
                   "expected": None, "unit": None, "cause": None, "action": ""} for key, word in wrong.items()],
    }  # fmt: skip


@cache
def _result(name: str, found: tuple[tuple[str, int], ...]) -> Any:
    return result_of(document(name, found), SharedStrings())[0]
