"""Growth of counters between two readings: the form of checks that compare them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dgxcheck.checks.engine.box import Box, Growth, gpu_unavailable, row_of
from dgxcheck.checks.engine.check import Judge
from dgxcheck.checks.engine.finding import Judgement, Subject, skip
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.facts.missing import Missing, need

MIN_EVENTS = 3
"""Fewer events make no rate, whatever the time between."""
HOUR_S, DAY_S = 3600.0, 86400.0
_UNITS = ((DAY_S, "days"), (HOUR_S, "hours"), (60.0, "minutes"))
COUNTER_RESET = skip("no-history", "the counter was reset since the first reading")
NO_EARLIER_READING = skip("no-history", "no earlier reading")
Rule = Callable[[Growth, Any, Any], "Judgement | Missing"]
"""From the old and the new record of one subject to a judgement."""


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


def per_gpu_growth(facts: str, rule: Rule) -> Judge:
    """A judge that applies ``rule`` to the two records that each GPU has in the field ``facts`` of the growth."""

    def judge(box: Box) -> Iterator[tuple[Subject, Judgement]]:
        for gpu in box.gpus:
            yield box.subject(gpu), gpu_unavailable(box, gpu) or ruled(_of_growth, box.growth, facts, gpu.bdf, rule)

    return judge


def _of_growth(growth: Growth | Judgement, facts: str, bdf: str | None, rule: Rule) -> Judgement | Missing:
    if isinstance(growth, Judgement):
        return growth
    new = need(row_of(getattr(growth.new, facts), bdf))
    old = row_of(getattr(growth.old, facts), bdf)
    return NO_EARLIER_READING if isinstance(old, Missing) else rule(growth, old, new)
