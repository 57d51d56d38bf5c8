"""Totals of error counters where no second reading tells whether they still grow."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.checks.engine.box import Box, Growth, guest
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.engine.growth import DAY_S, HOUR_S, MIN_EVENTS, duration
from dgxcheck.checks.engine.visibility import cpus_hidden
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.typical import median

MANY = 10
"""Where the time since boot is not known: days' worth of the limit, and times the usual total."""


def is_short(growth: Growth | Judgement) -> bool:
    """Was the counter read once, or twice within an hour? Errors come in bursts: a quiet minute acquits nothing."""
    return isinstance(growth, Judgement) or growth.seconds < HOUR_S


def flood(box: Box, count: int, others: Iterable[int] | None, limit: float, period: float) -> str | None:
    """In words the time in which so many errors are a flood: more than ``limit`` in each ``period`` seconds since boot.

    A counter begins at boot or later, so that this rate is the least. Where the time since boot is not known the total
    is compared with those of the ``others``, or not judged where there are none to compare with. None where it is no
    flood.
    """
    seconds = uptime(box)
    if seconds is not None:
        many = count >= MIN_EVENTS and count * period / max(seconds, period) > limit
        return f"in the {duration(seconds)} since boot" if many else None
    if others is None or count <= MANY * limit * DAY_S / period:
        return None
    usual = median([*others] or [count])
    return f"in all, usual here: {usual:g}" if count > MANY * usual else None


def uptime(box: Box) -> float | None:
    """Seconds since boot; None where not known, and where a counter can be older: of an adapter that a virtual machine
    was given, or in a container with a clock of its own.
    """
    host = box.snapshot.host
    if not isinstance(host, Host) or isinstance(host.uptime_s, Missing) or guest(box) is not None or cpus_hidden(box):
        return None
    return host.uptime_s or None
