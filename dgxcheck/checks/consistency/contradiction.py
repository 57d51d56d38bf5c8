"""Readings that exclude each other, with where each was read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.nature import Fact, rows_of
from dgxcheck.facts.record import Record
from dgxcheck.facts.values import where
from dgxcheck.topology.model import Device

Facts = Mapping[str, object]
"""Of one device by path, as ``engine/device_facts.py`` gives them."""
_MOST = 3


class Contradiction(Record, kw_only=False):
    """What excludes what, in a few words, and the readings."""

    text: str
    evidence: tuple[Evidence, ...]


ReadingRule = Callable[[Box, Device, Facts], Iterable[Contradiction]]
"""The contradictions of one GPU; what was not read contradicts nothing."""


def number(facts: Facts, path: str) -> float | None:
    """A fact as a number; None for a gap and for all else."""
    value = facts.get(path)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def reading(box: Box, gpu: Device, path: str) -> Evidence:
    """Where a fact was read, and its value: ``gpu_clocks.current.sm``."""
    field, *names = path.split(".")
    held: Any = getattr(box.snapshot, field)
    record = value = next(row for row in (held.gpus if field == "gpu" else held) if row.bdf == gpu.bdf)
    of: list[Fact] = []
    for name in names:
        of.append(rows_of(type(value))[name])
        value = getattr(value, name)
    return Evidence(where(record, tuple(of)), value if isinstance(value, int | float | str | bool) else str(value))


def judged(found: Sequence[Contradiction], status: Status = Status.UNKNOWN) -> Judgement:
    """One judgement of all that was found; a warning has the fault ``contradiction``."""
    if not found:
        return Judgement(Status.PASS, "the readings agree", 0, 0, "contradictions")
    more = f"; and {len(found) - _MOST} more" if len(found) > _MOST else ""
    message = "; ".join(each.text for each in found[:_MOST]) + more
    evidence = tuple({fact.where: fact for each in found for fact in each.evidence}.values())
    fault = Fault.CONTRADICTION if status is Status.WARN else None
    return Judgement(status, message, len(found), 0, "contradictions", evidence, fault=fault)
