"""Counters of errors: their growth between two readings, and totals where no second reading tells whether they grow."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.checks.engine.box import Box, Growth, guest
from dgxcheck.checks.engine.finding import Judgement, skip
from dgxcheck.checks.engine.host_limits import cpus_hidden
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.typical import median

MIN_EVENTS = 3
"""Fewer events make no rate, whatever the time between."""
HOUR_S, DAY_S = 3600.0, 86400.0
_UNITS = ((DAY_S, "days"), (HOUR_S, "hours"), (60.0, "minutes"))
COUNTER_RESET = skip("no-history", "the counter was reset since the first reading")
NO_EARLIER_READING = skip("no-history", "no earlier reading")


def counter_growth(old: int | Missing, new: int | Missing) -> int | Missing | None:
    """By how much a counter grew; None if it fell, which is a reset and no growth."""
    if isinstance(new, Missing):
        return new
    if isinstance(old, Missing):
        return old
    return new - old if new >= old else None


def rate(events: int, growth: Growth, period: float) -> float:
    """Events in ``period`` seconds; over a shorter time the events themselves, which are no rate yet."""
    return events * period / max(growth.seconds, period)


def duration(seconds: float) -> str:
    """A time for people, in the largest unit of which there are two: ``30 days``, ``10 s``."""
    for size, unit in _UNITS:
        if seconds >= 2 * size:
            return f"{round(seconds / size)} {unit}"
    return f"{seconds:.3g} s"


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
    if (seconds := uptime(box)) is not None:
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
