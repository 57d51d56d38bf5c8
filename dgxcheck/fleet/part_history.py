"""Where each part was, by its serial number, and whether a fault went along with it or stayed in the slot.

A part that moved and shows the fault again at its new place, while the old place is clean with another part, is the
part. A place that shows it again with another part, while the first part is clean elsewhere or gone, is the slot, board
or cable. How likely mere chance is follows from how often the fault comes up in the fleet: the chance that a part has
it within the days that passed until it was there again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import expm1

from dgxcheck.facts.faults import BY_WORD
from dgxcheck.facts.inventory import Part
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.node import NodeFault

DAY_S = 86400.0
CHANCE = 0.005
"""Above it nothing is blamed: so often a fault comes up at the second place by itself."""
BUS_ID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]", flags=re.ASCII)
_MOST_STAYS = 16
"""A serial number that moves more often is that of several parts, or none."""
Place = tuple[str, str]
"""Node, and bus id or slot; a board with two GPUs has both bus ids."""


class Sightings(Record):
    """Of one fault at one place."""

    first_s: float
    last_s: float
    results: int


class Stay:
    """A part at one place, as long as results show it there."""

    def __init__(self, place: Place, at_s: float) -> None:
        self.place, self.first_s, self.last_s, self.results = place, at_s, at_s, 0
        self.found: dict[str, Sightings] = {}
        """By the word of the fault."""

    def sighted(self, word: str, at_s: float) -> None:
        before = self.found.get(word, Sightings(first_s=at_s, last_s=at_s, results=0))
        self.found[word] = Sightings(first_s=before.first_s, last_s=at_s, results=before.results + 1)


class PartHistory(Record):
    part: Part
    """At its last place."""
    stays: tuple[Stay, ...]
    """In the order of time."""


class Followed(Record):
    """A fault that was there before and after a move."""

    what: str
    """``part`` or ``slot``"""
    word: str
    part: Part
    """To blame, or the first one that was at the place to blame."""
    before: Stay
    after: Stay
    other: str
    """Serial number: of the part that is clean at the old place, or has the fault at the same place."""
    clean: int
    """Results that show the fault at neither: of the old place with another part, or of the part elsewhere."""
    chance: float


class PartsOverTime:
    """Collects the stays of all parts; results are given in the order of time."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}
        self._stays: dict[str, list[Stay]] = {}
        self._at: dict[Place, str] = {}
        """The last serial number at a bus id or slot: one that fell off the bus cannot be read."""

    def add(self, at_s: float, node: str, parts: Iterable[Part], faults: Iterable[NodeFault]) -> None:
        listed = [*parts]
        self._at |= {(node, part.at): part.serial for part in listed}
        boards = gathered((part.serial, part) for part in listed)
        for serial, own in boards.items():
            self._parts[serial] = own[0]
            place = node, " + ".join(sorted(part.at for part in own))
            stays = self._stays.setdefault(serial, [])
            if not stays or stays[-1].place != place:
                if len(stays) > _MOST_STAYS:
                    continue
                stays.append(Stay(place, at_s))
            stays[-1].last_s, stays[-1].results = at_s, stays[-1].results + 1
        for fault in faults:
            kind = BY_WORD.get(fault.word)
            if kind is not None and kind.category != "setting" and fault.status != "unknown":
                for place in BUS_ID.findall(fault.key) or [fault.key.partition("/")[2]]:
                    serial = self._at.get((node, place), "")
                    if serial and self._stays[serial][-1].place[0] == node:
                        self._stays[serial][-1].sighted(fault.word, at_s)

    def histories(self) -> tuple[dict[str, PartHistory], list[str]]:
        """By serial number; and serial numbers of several parts."""
        doubtful = sorted(serial for serial, stays in self._stays.items() if len(stays) > _MOST_STAYS)
        return {
            serial: PartHistory(part=self._parts[serial], stays=tuple(stays))
            for serial, stays in sorted(self._stays.items())
            if len(stays) <= _MOST_STAYS
        }, doubtful


def followed(parts: Mapping[str, PartHistory]) -> tuple[Followed, ...]:
    """Parts and slots to blame, the least likely by chance first."""
    rates = _rates(parts.values())
    at = gathered((stay.place, (serial, stay)) for serial, history in parts.items() for stay in history.stays)
    found = [*_moved_along(parts, at, rates), *_stayed(parts, at, rates)]
    found = [each for each in found if each.chance <= CHANCE]
    return tuple(sorted(found, key=lambda each: (each.chance, each.part.serial, each.word)))


def _rates(parts: Iterable[PartHistory]) -> Mapping[tuple[str, str], float]:
    """How often a part of a kind gets a fault, a day."""
    days: dict[str, float] = {}
    times: Counter[tuple[str, str]] = Counter()
    for history in parts:
        for stay in history.stays:
            kind = history.part.kind
            days[kind] = days.get(kind, 0.0) + (stay.last_s - stay.first_s) / DAY_S + 1
            times.update((kind, word) for word in stay.found)
    return {(kind, word): count / days[kind] for (kind, word), count in times.items()}


def _chance(kind: str, word: str, stay: Stay, rates: Mapping[tuple[str, str], float]) -> float:
    """That another part has the fault as soon after it came to a place."""
    wait = (stay.found[word].first_s - stay.first_s) / DAY_S + 1
    return -expm1(-rates[kind, word] * wait)


_At = Mapping[Place, Sequence[tuple[str, Stay]]]
_Rates = Mapping[tuple[str, str], float]


def _moved_along(parts: Mapping[str, PartHistory], at: _At, rates: _Rates) -> Iterator[Followed]:
    for serial, history in parts.items():
        for before, after in pairwise(history.stays):
            for word in before.found.keys() & after.found.keys():
                others = [(other, stay) for other, stay in at[before.place]
                          if other != serial and stay.first_s > before.found[word].last_s]  # fmt: skip
                if any(word in stay.found for _, stay in others):
                    continue
                yield Followed(
                    what="part", word=word, part=history.part, before=before, after=after,
                    other=others[0][0] if others else "", clean=sum(stay.results for _, stay in others),
                    chance=_chance(history.part.kind, word, after, rates),
                )  # fmt: skip


def _stayed(parts: Mapping[str, PartHistory], at: _At, rates: _Rates) -> Iterator[Followed]:
    for stays in at.values():
        ordered = sorted(stays, key=lambda stay: stay[1].first_s)
        for (serial, before), (other, after) in pairwise(ordered):
            for word in before.found.keys() & after.found.keys() if serial != other else ():
                elsewhere = [stay for stay in parts[serial].stays if stay.first_s > before.last_s]
                if any(word in stay.found for stay in elsewhere) or any(
                    word in stay.found for stay in parts[other].stays if stay.last_s < after.first_s
                ):
                    continue
                kind = parts[serial].part.kind
                yield Followed(
                    what="slot", word=word, part=parts[serial].part, before=before, after=after, other=other,
                    clean=sum(stay.results for stay in elsewhere), chance=_chance(kind, word, after, rates),
                )  # fmt: skip
