"""One fact of a fault at another place: what the fault changed, put into the content of the new place."""

from __future__ import annotations

import re
from collections.abc import Callable

from dgxcheck.facts.missing import Json, Missing
from dgxcheck.source.recording.keys import from_rows, to_rows

Text = Callable[[str], str]
RANGE = re.compile(r"0x[0-9a-f]{16} 0x[0-9a-f]{16} 0x[0-9a-f]{16}")
"""A line of sysfs ``resource``: start, end, flags."""
REGISTER = 4
"""Bytes."""


def changed(old: Json | Missing, fault: Json, new: Json | Missing, text: Text) -> Json:
    """``fault`` has taken the place of ``old``: what takes that of ``new``. Names in it go through ``text``."""
    match fault, old, new:
        case {"rows": _}, {"rows": _}, {"rows": _}:
            return _config(old, fault, new)
        case {"missing": _}, _, _:
            return fault
        case dict(), dict(), dict() if "missing" not in old and "missing" not in new:
            return {**new, **{name: value for name, value in fault.items() if value != old.get(name)}}
        case list(), list(), list() if all(isinstance(each, str) for each in fault):
            out, more = ({text(str(each)) for each in two} for two in (_without(old, fault), _without(fault, old)))
            return [*sorted({str(each) for each in new} - out | more)]
        case str(), str(), str() if old != new and fault.count("\n") == old.count("\n") == new.count("\n"):
            rows = zip(old.split("\n"), fault.split("\n"), new.split("\n"), strict=True)
            return "\n".join(there if before == now else _line(before, now, there, text) for before, now, there in rows)
        case str(), _, _:
            return text(fault)
    return fault


def _without(some: list[Json], others: list[Json]) -> list[Json]:
    return [each for each in some if each not in others]


def _config(old: Json | Missing, fault: Json, new: Json | Missing) -> Json:
    """Config space, register by register."""
    if isinstance(old, Missing) or isinstance(new, Missing):
        return fault
    was, now, there = from_rows(old), from_rows(fault), from_rows(new)
    if was is None or now is None or there is None or not len(was) == len(now) == len(there):
        return fault  # a device that is gone reads as ones, and no further than its header
    registers = range(0, len(now), REGISTER)
    kept = (there if was[at : at + REGISTER] == now[at : at + REGISTER] else now for at in registers)
    return {**to_rows(b"".join(source[at : at + REGISTER] for at, source in zip(registers, kept, strict=True)))}


def _line(old: str, fault: str, new: str, text: Text) -> str:
    """A line that the fault changed; the range of a BAR keeps its start, unless it was given none."""
    if not all(RANGE.fullmatch(line) for line in (old, fault, new)):
        return text(fault)
    (was, _, _), (start, end, flags), (there, _, _) = (
        [int(word, 16) for word in line.split()] for line in (old, fault, new)
    )
    begins = there + start - was if start else 0
    return " ".join(f"0x{number:016x}" for number in (begins, begins + end - start, flags))
