"""The single values of a fact record, whatever its fields: what is added to a record is compared from then on."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cache

from dgxcheck.facts.missing import Gap, Json, Missing
from dgxcheck.facts.record import Record, fields

Scalar = bool | int | float | str | None
Value = Scalar | tuple[Scalar, ...]

PRESENT, UNREAD = "present", "not readable"
_NOT_ASKED = (Gap.UNASKED, Gap.UNRECORDED, Gap.ABSENT)
"""A file that is absent may be absent from a copy of the tree only; sysfs has the same files for devices of a kind."""


class Leaf(Record, kw_only=False):
    """One value of a record."""

    fact: str
    """Record and field: ``GpuPower.limit_mw``, ``GpuClocks.max.graphics``, ``PciBars.bars.size``."""
    name: str
    """The same with the place in a tuple: ``PciBars.bars[1].size``."""
    value: Value

    @property
    def json(self) -> Json:
        """The value as evidence."""
        return list(self.value) if isinstance(self.value, tuple) else self.value


def leaves(record: Record, skipped: frozenset[str] = frozenset(), gaps: bool = False) -> Iterator[Leaf]:
    """Every value of a record and of the records in it, without the facts ``skipped``.

    ``skipped`` holds records, ``GpuEcc``, fields, ``GpuPower.usage_mw``, and fields of any record, ``*.bdf``. A record
    in a field that may hold something else gives a value of its own, ``PRESENT``. With ``gaps`` what could not be read
    gives ``UNREAD``, but not what was not asked or is absent.
    """
    name = type(record).__name__
    if name not in skipped:
        yield from _of_record(record, name, name, skipped, gaps)


def _of_record(record: Record, fact: str, name: str, skipped: frozenset[str], gaps: bool) -> Iterator[Leaf]:
    for field in _compared(type(record), fact, skipped):
        value, inside = getattr(record, field), (f"{fact}.{field}", f"{name}.{field}")
        if isinstance(value, Missing):
            if gaps and value.gap not in _NOT_ASKED:
                yield Leaf(*inside, UNREAD)
            continue
        if isinstance(value, Record) and "|" in type(record).__annotations__[field]:
            yield Leaf(*inside, PRESENT)
        yield from _of_value(value, *inside, skipped, gaps)


@cache
def _compared(record: type[Record], fact: str, skipped: frozenset[str]) -> tuple[str, ...]:
    """The fields of a record that are not left out."""
    return tuple(field for field in fields(record) if skipped.isdisjoint((f"{fact}.{field}", f"*.{field}")))


def _of_value(value: object, fact: str, name: str, skipped: frozenset[str], gaps: bool) -> Iterator[Leaf]:
    if isinstance(value, Record):
        yield from _of_record(value, fact, name, skipped, gaps)
    elif isinstance(value, tuple) and any(isinstance(each, Record) for each in value):
        yield Leaf(fact, name, len(value))
        for number, each in enumerate(value):
            if isinstance(each, Record):
                yield from _of_record(each, fact, f"{name}[{number}]", skipped, gaps)
    elif isinstance(value, Enum):
        yield Leaf(fact, name, value.value)
    elif value is None or isinstance(value, bool | int | float | str | tuple):
        yield Leaf(fact, name, value)
