"""Typed readings of NVML's answers, and the facts of a group of them, by ``dgxcheck.facts.nvml_quantities``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeGuard

from dgxcheck.facts import bdf
from dgxcheck.facts.ids import NVLINK_5
from dgxcheck.facts.missing import Gap, Missing, question
from dgxcheck.facts.nvml_quantities import GROUPS, Quantity
from dgxcheck.source.protocol import Json, Source

U64 = 2**64 - 1
U32 = 2**32 - 1


def garbled(where: str, value: Json) -> Missing:
    """The gap for an answer that makes no sense, with its beginning."""
    form = f"a {type(value).__name__}" if isinstance(value, (dict, list)) else repr(value)
    return Missing(Gap.GARBLED, where, f"unexpected answer: {form[:80]}")


def as_number(value: Json | Missing, where: str, low: int = 0, high: int = U64) -> int | Missing:
    """An integer from ``low`` to ``high``."""
    return value if isinstance(value, Missing) or _is_number(value, low, high) else garbled(where, value)


def _is_number(value: Json, low: int, high: int) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def as_text(value: Json | Missing, where: str) -> str | Missing:
    """Text without blanks around it; a driver gives empty text where a board's ROM holds none."""
    if isinstance(value, Missing):
        return value
    if not isinstance(value, str):
        return garbled(where, value)
    return value.strip() or Missing(Gap.UNSUPPORTED, where, "empty answer")


def as_bdf(value: Json | Missing) -> str | None:
    """``00000000:06:00.0`` -> ``0000:06:00.0``; None for no bdf."""
    return bdf.as_bdf(value) if isinstance(value, str) else None


def is_on(value: int | Missing, where: str) -> bool | Missing:
    """An ``nvmlEnableState_t``."""
    if isinstance(value, Missing):
        return value
    return value == 1 if value in (0, 1) else garbled(where, value)


def number(
    source: Source, function: str, subject: str = "", *args: int, low: int = 0, high: int = U64
) -> int | Missing:
    """The integer that a function answers."""
    answer = source.nvml(function, subject, *args)
    if isinstance(answer, Missing) or _is_number(answer, low, high):
        return answer
    return garbled(question(function, subject, *args), answer)


def text(source: Source, function: str, subject: str = "", *args: int) -> str | Missing:
    """The text that a function answers."""
    return as_text(source.nvml(function, subject, *args), question(function, subject, *args))


def numbers(source: Source, function: str, subject: str = "", *args: int) -> tuple[int, ...] | Missing:
    """The list of integers that a function answers; one that is none spoils the list."""
    answer, where = source.nvml(function, subject, *args), question(function, subject, *args)
    if isinstance(answer, Missing):
        return answer
    if not isinstance(answer, list):
        return garbled(where, answer)
    values: list[int] = []
    for item in answer:
        if isinstance(value := as_number(item, where), Missing):
            return value
        values.append(value)
    return tuple(values)


def outputs(source: Source, function: str, subject: str, *args: int, count: int) -> tuple[int | Missing, ...]:
    """The ``count`` integers of a function with several outputs (``EccMode``: current, pending).

    null is one that an imported text does not show.
    """
    answer, where = source.nvml(function, subject, *args), question(function, subject, *args)
    if isinstance(answer, list) and len(answer) == count:
        return tuple(Missing(Gap.UNRECORDED, where) if item is None else as_number(item, where) for item in answer)
    return (answer if isinstance(answer, Missing) else garbled(where, answer),) * count


def fields(source: Source, function: str, subject: str, *args: int) -> dict[str, Json] | Missing:
    """The struct that a function answers."""
    answer = source.nvml(function, subject, *args)
    if isinstance(answer, (dict, Missing)):
        return answer
    return garbled(question(function, subject, *args), answer)


def members(
    source: Source, function: str, subject: str, *args: int, names: tuple[str, ...]
) -> tuple[int | Missing, ...]:
    """Integers of the struct that a function answers, by field name; an older struct may lack one of them."""
    struct, where = fields(source, function, subject, *args), question(function, subject, *args)
    if isinstance(struct, Missing):
        return (struct,) * len(names)
    return tuple(member(struct, name, where) for name in names)


def member(struct: dict[str, Json], name: str, where: str) -> int | Missing:
    """One integer of a struct; ``unsupported`` where it has no such field or the field is null."""
    value = struct.get(name)
    if value is None:
        return Missing(Gap.UNSUPPORTED, f"{where} {name}", "no such field")
    return as_number(value, f"{where} {name}")


def structs(source: Source, function: str, subject: str, *args: int) -> tuple[dict[str, Json], ...] | Missing:
    """The list of structs that a function answers."""
    answer, where = source.nvml(function, subject, *args), question(function, subject, *args)
    if isinstance(answer, Missing):
        return answer
    if not isinstance(answer, list):
        return garbled(where, answer)
    found = tuple(item for item in answer if isinstance(item, dict))
    return found if len(found) == len(answer) else garbled(where, answer)


def facts_of(source: Source, group: str, bdf: str) -> dict[str, Any]:
    """Fields of the group's record to values or gaps, for one GPU."""
    return {
        name: value
        for quantity in GROUPS[group]
        if quantity.scope == "gpu" and quantity.facts
        for name, value in zip(quantity.facts, _values(source, quantity, bdf), strict=True)
    }


def facts_of_link(source: Source, group: str, bdf: str, link: int, state: int | Missing) -> dict[str, Any]:
    """Fields to values or gaps, for one NVLink; all are the gap of its ``state`` where that is missing."""
    of_links = (quantity for quantity in GROUPS[group] if quantity.scope in ("link", "link up", "link 5"))
    return {
        quantity.facts[0]: state if isinstance(state, Missing) else _of_link(source, quantity, bdf, link, state)
        for quantity in of_links
    }


def _of_link(source: Source, quantity: Quantity, bdf: str, link: int, state: int) -> int | Missing:
    """What only NVLink 5 and newer count is asked of no other link."""
    if quantity.scope == "link 5":
        version = number(source, "nvmlDeviceGetNvLinkVersion", bdf, link) if state == 1 else 0
        where = question(quantity.function, bdf, link, *quantity.args)
        if isinstance(version, int) and version < NVLINK_5:
            return Missing(Gap.UNSUPPORTED, where, "before NVLink 5, or the link is down")
    value: int | Missing = _values(source, quantity, bdf, link)[0]
    return value


def nested(facts: Mapping[str, Any], record: str) -> dict[str, Any]:
    """The facts of a record within the group's: ``current.sm`` is ``sm`` of ``current``."""
    prefix = f"{record}."
    return {name[len(prefix) :]: value for name, value in facts.items() if name.startswith(prefix)}


def plain(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The facts that are in no record within the group's."""
    return {name: value for name, value in facts.items() if "." not in name}


def _values(source: Source, quantity: Quantity, bdf: str, *first: int) -> tuple[Any, ...]:
    function, args = quantity.function, (*first, *quantity.args)
    if quantity.form == "text":
        return (text(source, function, bdf, *args),)
    values: tuple[int | Missing, ...]
    if quantity.members:
        values = members(source, function, bdf, *args, names=quantity.members)
    elif len(quantity.facts) > 1:
        values = outputs(source, function, bdf, *args, count=len(quantity.facts))
    else:
        values = (number(source, function, bdf, *args, low=quantity.low, high=quantity.high),)
    if quantity.form != "flag":
        return values
    where = question(function, bdf, *args)
    return tuple(is_on(value, where) for value in values)
