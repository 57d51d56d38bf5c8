"""Rates: what limits a transfer, and what packets of PCIe leave of the line rate."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import inf, isinf
from typing import Literal

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record

NO_LIMIT = inf
"""A part that carries whatever the others do."""
Direction = Literal["read", "write"]


class Rate(Record, kw_only=False):
    """GB/s between two bounds; the two are equal where the figure is known."""

    least: float | Missing
    """What others have reached: what measurements are held to. Missing where nobody published a figure."""
    most: float | Missing
    """What it allows at the most."""

    @property
    def is_known(self) -> bool:
        """Is it one figure?"""
        return not isinstance(self.least, Missing) and self.least == self.most

    def __str__(self) -> str:
        """``10.5 GB/s``, ``7.1 to 10.5 GB/s``, ``at most 10.5 GB/s``, ``unknown``"""
        if isinstance(self.most, Missing):
            return "unknown"
        if isinstance(self.least, Missing):
            return f"at most {self.most:.1f} GB/s"
        return f"{self.most:.1f} GB/s" if self.is_known else f"{self.least:.1f} to {self.most:.1f} GB/s"


def exactly(gbs: float) -> Rate:
    """A known figure."""
    return Rate(gbs, gbs)


def unknown(gap: Missing) -> Rate:
    """Neither bound is known."""
    return Rate(gap, gap)


class Limit(Record):
    """One part of a path and what it carries."""

    name: str
    """``link 0000:00:02.0 - 0000:03:00.0``, ``host bridge pci0000:00``, ``6 NVLinks``."""
    read: Rate
    write: Rate
    basis: str
    """How the figures are made: ``gen3 x16, MaxPayload 256``."""
    source: str

    def rate(self, direction: Direction) -> Rate:
        """What it carries in that direction."""
        return self.read if direction == "read" else self.write


class Total(Record):
    """What a path carries in one direction."""

    rate: Rate
    limited_by: tuple[Limit, ...]
    """The parts that determine ``most``; empty where nothing is known."""
    unknown: tuple[Limit, ...]
    """The parts whose least is not known, because nobody published it or it cannot be read."""


def least_of(limits: Iterable[Limit], direction: Direction) -> Total:
    """The lowest bounds; ``least`` is Missing as soon as one part's is, ``most`` if all are."""
    limits = tuple(limits)
    rates = [(limit, limit.rate(direction)) for limit in limits]
    limited = [(limit, rate.most) for limit, rate in rates if not isinstance(rate.most, Missing)]
    lows = [rate.least for _, rate in rates if not isinstance(rate.least, Missing)]
    gaps = [(limit, rate.least) for limit, rate in rates if isinstance(rate.least, Missing)]
    most = min((gbs for _, gbs in limited if not isinf(gbs)), default=None)
    least: float | Missing = gaps[0][1] if gaps else min(lows)
    top: float | Missing = most if most is not None else next(r.most for _, r in rates if isinstance(r.most, Missing))
    if not isinstance(least, Missing) and not isinstance(top, Missing):
        least = min(least, top)
    return Total(rate=Rate(least, top), limited_by=tuple(limit for limit, gbs in limited if gbs == most),
                 unknown=tuple(limit for limit, _ in gaps))


SOURCE = "Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018"
OVERHEAD: Mapping[Direction, int] = {"read": 20, "write": 24}
"""Bytes per packet."""
LINK_LAYER = 57.88 / 62.96
SMALLEST, LARGEST = 128, 4096
"""MaxPayload, bytes: every function can do with the one, no function has more than the other."""


def share(payload: int, direction: Direction) -> float:
    """The part of the line rate that is data, in packets of ``payload`` bytes."""
    return LINK_LAYER * payload / (payload + OVERHEAD[direction])
