"""Typed readings of NVML's answers, and the facts of a group of them, by ``dgxcheck.facts.nvml.quantities``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from itertools import cycle
from typing import Any, TypeGuard, TypeVar

from dgxcheck.facts import bdf
from dgxcheck.facts.bdf import bus_order, is_bdf
from dgxcheck.facts.ids import MOST_GPUS, NVLINK_5, NVLINK_MAX_LINKS, NvmlReturn
from dgxcheck.facts.missing import Gap, Missing, need, or_gap, question
from dgxcheck.facts.nvml.quantities import GROUPS, LARGEST, U64, Quantity
from dgxcheck.facts.record import Record
from dgxcheck.source.protocol import Json, Source
from probes.ask import mapped

U32 = 2**32 - 1


def garbled(where: str, value: Json) -> Missing:
    """The gap for an answer that makes no sense, with its beginning."""
    form = f"a {type(value).__name__}" if isinstance(value, (dict, list)) else repr(value)
    return Missing(Gap.GARBLED, where, f"unexpected answer: {form[:80]}")


def as_number(value: Json | Missing, where: str, high: int = LARGEST) -> int | Missing:
    """An integer from 0 to ``high``."""
    return value if isinstance(value, Missing) or _is_number(value, 0, high) else garbled(where, value)


def _is_number(value: Json | Missing, low: int, high: int) -> TypeGuard[int]:
    return type(value) is int and low <= value <= high  # no bool


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
    return value if isinstance(value, Missing) else value == 1 if value in (0, 1) else garbled(where, value)


def number(
    source: Source, function: str, subject: str = "", *args: int, low: int = 0, high: int = LARGEST,
    unknown: Mapping[int, str] = {},
) -> int | Missing:  # fmt: skip
    """The integer that a function answers; ``unknown`` are those that stand for none, with what they say."""
    answer = source.nvml(function, subject, *args)
    if isinstance(answer, int) and answer in unknown:
        return Missing(Gap.UNSUPPORTED, question(function, subject, *args), unknown[answer])
    if _is_number(answer, low, high) or isinstance(answer, Missing):
        return answer
    return garbled(question(function, subject, *args), answer)


def text(source: Source, function: str, subject: str = "", *args: int) -> str | Missing:
    """The text that a function answers."""
    return as_text(source.nvml(function, subject, *args), question(function, subject, *args))


@or_gap
def numbers(source: Source, function: str, subject: str = "", *args: int) -> tuple[int, ...] | Missing:
    """The list of integers that a function answers; one that is none spoils the list."""
    answer = need(_typed(list, source, function, subject, *args))
    found = tuple(item for item in answer if _is_number(item, 0, U64))
    wrong = next((item for item in answer if not _is_number(item, 0, U64)), None)
    return found if len(found) == len(answer) else garbled(question(function, subject, *args), wrong)


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
    found: dict[str, Json] | Missing = _typed(dict, source, function, subject, *args)
    return found


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
    if (value := struct.get(name)) is None:
        return Missing(Gap.UNSUPPORTED, f"{where} {name}", "no such field")
    return as_number(value, f"{where} {name}")


def structs(source: Source, function: str, subject: str, *args: int) -> tuple[dict[str, Json], ...] | Missing:
    """The list of structs that a function answers."""
    if isinstance(answer := _typed(list, source, function, subject, *args), Missing):
        return answer
    found = tuple(item for item in answer if isinstance(item, dict))
    return found if len(found) == len(answer) else garbled(question(function, subject, *args), answer)


def _typed(kind: type[dict[str, Json] | list[Json]], source: Source, function: str, subject: str, *args: int) -> Any:
    answer = source.nvml(function, subject, *args)
    return answer if isinstance(answer, (kind, Missing)) else garbled(question(function, subject, *args), answer)


def facts_of(source: Source, group: str, bdf: str, **kinds: type[Record]) -> dict[str, Any]:
    """The facts of a GPU by field of the group's record; those of a record in it as one of its ``kinds``:
    ``current.sm`` is ``sm`` of ``current``.
    """
    facts = {name: value for quantity in _of_gpus(group)
             for name, value in zip(quantity.facts, _values(source, quantity, bdf), strict=True)}  # fmt: skip
    inner: dict[str, dict[str, Any]] = {record: {} for record in kinds}
    for name in [name for name in facts if "." in name]:
        record, _, field = name.partition(".")
        inner[record][field] = facts.pop(name)
    return facts | {record: kind(**inner[record]) for record, kind in kinds.items()}


def facts_of_link(source: Source, group: str, bdf: str, link: int, state: int | Missing) -> dict[str, Any]:
    """Fields to values or gaps, for one NVLink; all are the gap of its ``state`` where that is missing.

    What only NVLink 5 and newer count is asked of no other link: its facts share one gap.
    """
    asked, of_5 = _of_links(group)
    if isinstance(state, Missing):
        return {quantity.facts[0]: state for quantity in (*asked, *of_5)}
    facts = {quantity.facts[0]: _values(source, quantity, bdf, link)[0] for quantity in asked}
    if of_5:
        version = number(source, "nvmlDeviceGetNvLinkVersion", bdf, link) if state == 1 else 0
        if isinstance(version, int) and version < NVLINK_5:
            where = question(of_5[0].function, bdf, link)
            gap = Missing(Gap.UNSUPPORTED, where, "before NVLink 5, or the link is down")
            return facts | {quantity.facts[0]: gap for quantity in of_5}
        facts |= {quantity.facts[0]: _values(source, quantity, bdf, link)[0] for quantity in of_5}
    return facts


@cache
def _of_gpus(group: str) -> tuple[Quantity, ...]:
    """What a group asks of every GPU."""
    return tuple(quantity for quantity in GROUPS[group] if quantity.scope == "gpu" and quantity.facts)


@cache
def _of_links(group: str) -> tuple[tuple[Quantity, ...], tuple[Quantity, ...]]:
    """What a group asks of every NVLink, and what only of those from NVLink 5 on."""
    return (
        tuple(quantity for quantity in GROUPS[group] if quantity.scope in ("link", "link up")),
        tuple(quantity for quantity in GROUPS[group] if quantity.scope == "link 5"),
    )


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
    if "flag" not in quantity.form:
        return values
    where, forms = question(function, bdf, *args), cycle(quantity.form.split(" "))
    return tuple(is_on(value, where) if form == "flag" else value for value, form in zip(values, forms, strict=False))


T = TypeVar("T")
_INVALID = NvmlReturn.INVALID_ARGUMENT
WITHOUT_NUMBER = "gpu-without-number"
_NO_NUMBER = Missing(Gap.UNRECORDED, "nvmlDeviceGetIndex", "the text does not tell the number")


def start(source: Source) -> Missing | None:
    """Why NVML cannot be used, or None where ``nvmlInit`` succeeded."""
    if isinstance(answer := source.nvml("nvmlInit"), Missing):
        return answer
    return None if answer is True else garbled("nvmlInit", answer)


def count(source: Source) -> int | Missing:
    """``nvmlDeviceGetCount``."""
    return number(source, "nvmlDeviceGetCount", high=MOST_GPUS)


def bdfs(source: Source) -> tuple[tuple[int | Missing, str | Missing], ...] | Missing:
    """Index and bdf of every GPU of ``nvmlDeviceGetHandleByIndex``; a gap for an index without a handle.

    Of an imported text a GPU may be known and its index not; it stands for one of the indexes that no text shows.
    """
    if (gap := start(source)) is not None:
        return gap
    if isinstance(total := count(source), Missing):
        return total
    listed: dict[str, int] = {}
    numbered = [(index, _handle(source, index, listed)) for index in range(total)]
    others = _without_number(source)
    not_shown = [row for row in numbered if isinstance(row[1], Missing) and row[1].gap is Gap.UNASKED]
    return (*(row for row in numbered if row not in not_shown[: len(others)]), *((_NO_NUMBER, bdf) for bdf in others))


def present(source: Source) -> tuple[str, ...] | Missing:
    """The GPUs that have a handle, in NVML's order."""
    listed = bdfs(source)
    return listed if isinstance(listed, Missing) else tuple(bdf for _, bdf in listed if isinstance(bdf, str))


def per_gpu(source: Source, read: Callable[[Source, str], T]) -> tuple[T, ...] | Missing:
    """``read`` for every GPU that has a handle."""
    return mapped(present(source), lambda bdf: read(source, bdf))


@or_gap
def per_link(source: Source, read: Callable[[Source, str, int, int | Missing], T]) -> tuple[T, ...]:
    """``read`` for every NVLink position and its state."""
    return tuple(read(source, bdf, link, state) for bdf in need(present(source)) for link, state in links(source, bdf))


def links(source: Source, bdf: str) -> tuple[tuple[int, int | Missing], ...]:
    """Position and ``nvmlDeviceGetNvLinkState`` of every NVLink that a GPU may have; none where it has no NVLink.

    Positions end where the driver calls the number an invalid argument. A GPU that says nothing at all about its last
    positions (lost, unrecorded ..) has one entry for all of these.
    """
    found: list[tuple[int, int | Missing]] = []
    for link in range(NVLINK_MAX_LINKS):
        state = number(source, "nvmlDeviceGetNvLinkState", bdf, link)
        if isinstance(state, Missing) and state.gap is Gap.UNSUPPORTED and (link == 0 or state.code == _INVALID):
            break
        found.append((link, state))
    while len(found) > 1 and _silent(found[-1][1]) and _silent(found[-2][1]):
        found.pop()
    return tuple(found)


def _without_number(source: Source) -> list[str]:
    """The bdfs under ``stated gpu-without-number``."""
    stated = source.stated()
    keys = [key.split(" ") for key in ({} if isinstance(stated, Missing) else stated)]
    return sorted({words[2] for words in keys if words[1:2] == [WITHOUT_NUMBER] and is_bdf(words[-1])}, key=bus_order)


def _handle(source: Source, index: int, listed: dict[str, int]) -> str | Missing:
    where = question("nvmlDeviceGetHandleByIndex", "", index)
    if isinstance(answer := source.nvml("nvmlDeviceGetHandleByIndex", "", index), Missing):
        return answer
    if (bdf := as_bdf(answer)) is None:
        return garbled(where, answer)
    if listed.setdefault(bdf, index) != index:
        return Missing(Gap.GARBLED, where, f"{bdf} is index {listed[bdf]} already")
    return bdf


def _silent(state: int | Missing) -> bool:
    return isinstance(state, Missing) and state.gap is not Gap.UNSUPPORTED
