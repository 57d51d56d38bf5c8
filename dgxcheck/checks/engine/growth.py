"""Counters of errors: their growth between two readings, and totals where no second reading tells whether they grow;
links that go down again and again by the log."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from typing import TypeVar

from dgxcheck.checks.engine.box import Box, Growth, guest
from dgxcheck.checks.engine.finding import BAD, Judgement, Status, given, skip
from dgxcheck.checks.engine.host_limits import cpus_hidden
from dgxcheck.facts.kernel_log import HcaEvent, HostEvent
from dgxcheck.facts.missing import Missing, need, or_gap
from dgxcheck.facts.typical import median

L = TypeVar("L", HcaEvent, HostEvent)
MIN_EVENTS = 3
"""Fewer events make no rate, whatever the time between."""
HOUR_S, DAY_S = 3600.0, 86400.0
_UNITS = ((DAY_S, "days"), (HOUR_S, "hours"), (60.0, "minutes"))
COMES_UP_S = 300.0
"""After boot, in which drivers, NetworkManager and the modules bring links down and up."""
_AT_ONCE_S = 30.0
COUNTER_RESET = skip("no-history", "the counter was reset since the first reading")
INTERRUPTED = skip("no-history", "interrupted before the counters were read again")
NO_EARLIER_READING = skip("no-history", "no earlier reading")


@or_gap
def counter_growth(old: int | Missing, new: int | Missing) -> int | None:
    """By how much a counter grew; None if it fell, which is a reset and no growth."""
    grown = need(new) - need(old)
    return grown if grown >= 0 else None


def new_events(old: int | Missing, new: int | Missing) -> int:
    """By how much a counter grew; the rule ends where it was reset, or cannot be read."""
    grown = need(counter_growth(old, new))
    return given(COUNTER_RESET if grown is None else grown)


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


def or_total(growth: Growth | Judgement, judgement: Judgement, total: Judgement | None) -> Judgement:
    """What the growth of a counter says; where that is nothing wrong, what its total does, if anything. What was seen
    for an hour or more, which passes or has a figure, needs no total: a counter that was reset, or not read before, has
    no growth."""
    seen = judgement.status is Status.PASS or judgement.measured is not None
    settled = judgement.status in BAD or (seen and not is_short(growth))
    return judgement if total is None or settled else total


def flood(box: Box, count: int, others: Iterable[int] | None, limit: float, period: float) -> str | None:
    """In words the time in which so many errors are a flood: more than ``limit`` in each ``period`` seconds since boot.

    A counter begins at boot or later, so that this rate is the least. Where the time since boot is not known the total
    is compared with those of the ``others``, or not judged where there are none to compare with. None where it is no
    flood.
    """
    if not count:  # most counters
        return None
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
    seconds = box.snapshot.known_host.uptime_s
    if isinstance(seconds, Missing) or guest(box) is not None or cpus_hidden(box):
        return None
    return seconds or None


def log_end(box: Box) -> float:
    """Seconds since boot at which the log was read; those of its last event where the time since boot is not known."""
    seconds = box.snapshot.known_host.uptime_s
    last = max((*(each.seconds for each in box.log.host), *(each.seconds for each in box.log.hcas)), default=0.0)
    return seconds if isinstance(seconds, int | float) and not cpus_hidden(box) else last


def flaps(box: Box, downs: Sequence[L], limit: float) -> list[L]:
    """Times that a link went down within the last day, if more than the limit; none while it comes up after boot.

    Those that follow one another at once are one: a driver takes its link down for each setting that is changed.
    """
    own = list(downs)
    if box.log.timed:
        up = -inf if isinstance(box.log.begins, Missing) else COMES_UP_S  # seconds of a text may begin anywhere
        own = [each for each in own if each.seconds > max(up, log_end(box) - DAY_S)]
    apart: list[L] = []
    for each in own:
        if not apart or each.seconds - apart[-1].seconds >= _AT_ONCE_S:
            apart.append(each)
    return apart if len(apart) > limit else []
