"""The single values of a record with the rows of the table that say what they are; their names and origins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum
from functools import cache, lru_cache

from dgxcheck.facts.missing import Gap, Json, Missing, question
from dgxcheck.facts.nature import Fact, rows_of
from dgxcheck.facts.record import Record

Scalar = bool | int | float | str | None
Value = Scalar | tuple[Scalar, ...]
Rows = tuple[Fact, ...]
"""Of a value in a record that a record holds: the row of the outer field, then that of the inner."""
Leaf = tuple[str, Rows, Value]
"""The name, ``PciBars.bars[1].size``, the rows and the value."""
Picked = Callable[[Fact], bool]

_SCALARS = frozenset((bool, int, float, str, type(None)))
PRESENT, UNREAD = "present", "not readable"
_NOT_ASKED = (Gap.UNASKED, Gap.UNRECORDED, Gap.ABSENT)
"""A file that is absent may be absent from a copy of the tree only; sysfs has the same files for devices of a kind."""
_LONGEST = 40
"""Characters of a value in a message; longer ones are in the evidence."""
_SHOWN: Mapping[str, tuple[str, float]] = {
    "mW": ("W", 1e-3), "kB": ("GiB", 1 / (1 << 20)), "bytes": ("MiB", 1 / (1 << 20)), "MiB": ("GiB", 1 / 1024),
    "ns": ("s", 1e-9),
}  # fmt: skip
"""Unit of a fact to the unit for people, and its factor."""


def held(value: object, above: Mapping[str, str] = {}) -> Iterator[tuple[Mapping[str, str], Record]]:
    """The records of a field and those in the tuples that they hold, with the keys that say of which device they are.

    A record in a field of another is a part of that one.
    """
    if isinstance(value, tuple):
        for each in value:
            yield from held(each, above)
    elif isinstance(value, Record):
        keys = {**above, **{name: str(getattr(value, name)) for name in _fields(type(value), "key")}}
        yield keys, value
        for name in _fields(type(value), "holder"):
            if isinstance(inside := getattr(value, name), tuple):
                yield from held(inside, keys)


@cache
def _fields(kind: type[Record], nature: str) -> tuple[str, ...]:
    return tuple(name for name, row in rows_of(kind).items() if row.nature == nature)


def is_inside(row: Fact) -> bool:
    """Is it a record that is part of its holder? Those of a tuple are records of their own."""
    return row.nature == "holder" and not row.record.__annotations__[row.name].startswith("tuple")


def leaves(record: Record, picked: Picked, gaps: bool = False) -> list[Leaf]:
    """Every value of a record and of the records in it whose rows, the outer ones too, are all ``picked``.

    A record in a field that may hold something else gives a value of its own, ``PRESENT``. With ``gaps`` what could not
    be read gives ``UNREAD``, but not what was not asked or is absent.
    """
    found: list[Leaf] = []
    _of_record(found, record, type(record).__name__, (), picked, gaps)
    return found


def _of_record(found: list[Leaf], record: Record, name: str, above: Rows, picked: Picked, gaps: bool) -> None:
    for field, full, inside, may_be_else in _rows(type(record), name, above, picked):
        value = getattr(record, field)
        if type(value) in _SCALARS:
            found.append((full, inside, value))
        elif isinstance(value, Missing):
            if gaps and value.gap not in _NOT_ASKED:
                found.append((full, inside, UNREAD))
        else:
            if may_be_else and isinstance(value, Record):
                found.append((full, inside, PRESENT))
            _of_value(found, value, full, inside, picked, gaps)


@lru_cache(maxsize=4096)
def _rows(kind: type[Record], name: str, above: Rows, picked: Picked) -> tuple[tuple[str, str, Rows, bool], ...]:
    """The fields that are picked: name, name of the value, its rows, and whether it may be something else than a
    record."""
    return tuple(
        (field, f"{name}.{field}", (*above, row), "|" in kind.__annotations__[field])
        for field, row in rows_of(kind).items()
        if picked(row)
    )


def _of_value(found: list[Leaf], value: object, name: str, inside: Rows, picked: Picked, gaps: bool) -> None:
    if isinstance(value, Record):
        _of_record(found, value, name, inside, picked, gaps)
    elif isinstance(value, tuple) and any(isinstance(each, Record | Missing) for each in value):
        found.append((name, inside, len(value)))
        for number, each in enumerate(value):
            if isinstance(each, Record):
                _of_record(found, each, f"{name}[{number}]", inside, picked, gaps)
    elif isinstance(value, Enum):
        found.append((name, inside, value.value))
    elif isinstance(value, Mapping) and (row_of := inside[-1].more.get("names")) is not None:
        found += ((f"{name}.{key}", (*inside, row_of(key)), each) for key, each in value.items()
                  if not isinstance(each, Missing))  # fmt: skip
    elif isinstance(value, Mapping):
        found.append((name, inside, tuple(sorted(f"{key}={each}" for key, each in value.items()))))
    elif value is None or isinstance(value, bool | int | float | str | tuple):
        found.append((name, inside, value))


@lru_cache(maxsize=4096)
def option(of: Rows, what: str) -> object:
    """The option of the outermost row that has it; None where none has."""
    return next((row.more[what] for row in of if what in row.more), None)


def is_same(of: Rows, a: object, b: object, limit: Callable[[str], float], tolerance: object = None) -> bool:
    """Are two values of a fact equal, or numbers within its row's tolerance or slack, whichever is more? ``limit``
    gives the percentage of a tolerance by name; ``tolerance`` stands in for that of the row."""
    name = tolerance or option(of, "tolerance")
    if a == b or name is None or not isinstance(a, int | float) or not isinstance(b, int | float):
        return a == b
    slack: int = of[-1].more.get("slack", 0)
    return abs(a - b) <= max(max(a, b) * limit(str(name)) / 100, slack)


def is_of(of: Rows, fields: frozenset[object]) -> bool:
    """Is it one of these fields, or held by one?"""
    return any(getattr(row.record, row.name, None) in fields for row in of)


def label(of: Rows) -> str:
    """What a value is called: ``highest SM clock``."""
    own = of[-1].label or of[-1].name.replace("_", " ")
    return " ".join((*(row.more["prefix"] for row in of[:-1] if "prefix" in row.more), own))


def described(of: Rows, value: Value) -> str:
    """Label and value."""
    return f"{label(of)} {text(of, value)}"


def text(of: Rows, value: Value) -> str:
    """A value with its unit, cut where it is long."""
    row = of[-1]
    if value is None or value in ("", ()):
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        value = " ".join(map(str, value))
    if isinstance(value, str):
        return value if len(value) <= _LONGEST else f"{_closed(value[:_LONGEST])}..."
    words = row.more.get("words", ())
    if isinstance(value, int) and 0 <= value < len(words):
        return str(words[value])
    if row.unit == "hex" and isinstance(value, int):
        return f"{value:#06x}"
    if row.unit == "cuda" and isinstance(value, int):
        return cuda_version(value)
    unit, factor = row.more.get("shown") or _SHOWN.get(row.unit, (row.unit, 1))
    if 0 < abs(value * factor) < 1:
        unit, factor = row.unit, 1
    return f"{value * factor:.6g} {unit}".rstrip()


def cuda_version(number: int) -> str:
    """``12.8`` for 12080."""
    return f"{number // 1000}.{number % 1000 // 10}"


def text_of_change(of: Rows, was: Value, now: Value) -> str:
    """``300 -> 163 W``; of lists and long texts the words that differ."""
    texts = [_items(value) for value in (was, now)]
    listed = isinstance(now, tuple) and all(isinstance(item, str) for item in now)
    if listed or (isinstance(now, str) and max(len(str(was)), len(now)) > _LONGEST):
        alone = [" ".join(item for item in items if item not in other) for items, other in (texts, texts[::-1])]
        if any(alone):
            return f"{alone[0] or 'none'} -> {alone[1] or 'none'}"
    old, new = text(of, was), text(of, now)
    unit = new.rpartition(" ")[2]
    if isinstance(now, int | float) and " " in new and old.endswith(f" {unit}"):
        old = old.removesuffix(f" {unit}")
    return f"{old} -> {new}"


def _items(value: Value) -> list[str]:
    return [*map(str, value)] if isinstance(value, tuple) else str(value).split()


def _closed(words: str) -> str:
    """Without a parenthesis that is open at the end."""
    return (words if words.count("(") == words.count(")") else words.rpartition("(")[0]).rstrip()


def as_json(value: Value) -> Json:
    """A value as evidence."""
    return list(value) if isinstance(value, tuple) else value


def where(record: Record, of: Rows) -> str:
    """The file or query that a value of a record was read from."""
    place: str = type(record)._where  # type: ignore[attr-defined]
    field = of[0]
    if place.startswith("/"):
        folder = place.format_map(_Fields(record))
        return folder if holds_many(place) else f"{folder}/{field.more.get('file', field.name)}"
    link, bdf = getattr(record, "link", None), getattr(record, "bdf", "")
    function, args = _query(place.removeprefix("nvml "), ".".join(row.name for row in of), field)
    return question(function, bdf, *([link] if isinstance(link, int) else []), *args)


def holds_many(place: str) -> bool:
    """Is it one file of all facts of a record?"""
    return place.endswith(("/config", "/resource", "/iommu_group"))


class _Fields(dict):  # type: ignore[type-arg]
    """The fields of a record, for a format."""

    def __init__(self, record: Record) -> None:
        self._record = record

    def __missing__(self, name: str) -> object:
        return getattr(self._record, name)


def _query(group: str, fact: str, field: Fact) -> tuple[str, tuple[int, ...]]:
    queries = _queries(group)
    asked = f"nvml{field.more['asked']}" if "asked" in field.more else f"{field.record.__name__}.{fact}"
    return queries.get(fact) or queries.get(field.name) or (asked, ())


@cache
def _queries(group: str) -> Mapping[str, tuple[str, tuple[int, ...]]]:
    """NVML function and arguments by fact."""
    from dgxcheck.facts.nvml.quantities import GROUPS

    asked = GROUPS.get(group, ())
    return {fact: (quantity.function, quantity.args) for quantity in asked for fact in quantity.facts}
