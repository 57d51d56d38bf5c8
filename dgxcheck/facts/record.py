"""Frozen records with slots: a dataclass without the code that ``dataclasses`` compiles for each class.

Forty such classes cost a command more start-up time than all of click; these cost next to nothing.
Type checkers see an ordinary ``@dataclass(frozen=True, slots=True, kw_only=True)``.
"""

from __future__ import annotations

from operator import attrgetter

from dgxcheck.facts import nature as natures

TYPE_CHECKING = False  # as typing has it; workers start without that module
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from typing_extensions import ParamSpec, dataclass_transform

    P = ParamSpec("P")
    R = TypeVar("R", bound="Record")
    T = TypeVar("T")
else:

    def dataclass_transform(**_: Any) -> Any:
        return lambda cls: cls


class _Slotted(type):
    """Turns the annotations of a class into slots and the values beside them into defaults."""

    _setters: tuple[tuple[str, Callable[[object, object], None]], ...]
    _many: bool

    def __new__(
        mcs, name: str, bases: tuple[type, ...], space: dict[str, Any], kw_only: bool = True, where: str = "",
        nature: str = "", many: bool = False,
    ) -> type:  # fmt: skip
        above: Any = bases[0] if bases else object
        annotations = space.get("__annotations__", {})
        rows, defaults = {**getattr(above, "_rows", {})}, {**getattr(above, "_defaults", {})}
        for field in annotations:
            if field in space:
                value = space.pop(field)
                if type(value) is list:  # of facts/nature.py; no field of a record has a list
                    rows[field], value = value, value[2]
                    if "default" not in value:
                        continue
                    value = value["default"]
                defaults[field] = value
        space["_defaults"], space["_rows"], space["_where"] = defaults, rows, where
        space["_nature"] = nature or getattr(above, "_nature", "")
        space["__annotations__"] = {**above.__annotations__, **annotations} if bases else {}
        names = space["__slots__"] = tuple(space["__annotations__"])
        space["_in_order"] = () if kw_only else names
        space["_values"] = staticmethod(attrgetter(*names) if names else type)
        cls = super().__new__(mcs, name, bases, space)
        cls._setters = tuple((field, cls.__dict__[field].__set__) for field in names)
        cls._many = many or getattr(above, "_many", False)
        if cls._many:
            _write_out(cls)
        return cls


def _write_out(cls: Any) -> None:
    """Gives a class of which a run makes hundreds an ``__init__`` with a statement for each field, as a dataclass has:
    it takes a third of the time of that of ``Record``, and 0.1 ms to compile. Of fields taken in order
    those without a default come first, as there."""
    defaults = cls._defaults
    given = ", ".join(f"{name}=defaults[{name!r}]" if name in defaults else name for name in cls.__slots__)
    body = "".join(f"\n    set_{name}(self, {name})" for name in cls.__slots__)
    space = {"defaults": defaults} | {f"set_{name}": put for name, put in cls._setters}
    exec(f"def __init__(self, {'' if cls._in_order else '*, '}{given}):{body}", space)
    cls.__init__ = space["__init__"]


@dataclass_transform(
    frozen_default=True, kw_only_default=True, field_specifiers=(
        natures.key, natures.holder, natures.identity, natures.place, natures.inventory, natures.version,
        natures.setting, natures.state, natures.capability, natures.gauge, natures.counter, natures.load,
    ),
)  # fmt: skip
class Record(metaclass=_Slotted):
    """Base of all facts: fields are the annotations of the class, given by keyword, compared and never changed.

    ``class Point(Record, kw_only=False)`` takes them in order too; one with ``many=True`` is made faster, and so are
    the records of it. A record of a record has the fields of both.
    """

    if TYPE_CHECKING:
        __slots__: tuple[str, ...]

        @staticmethod
        def _values(record: Record) -> object: ...

    else:

        def __init__(self, *given: Any, **values: Any) -> None:
            if given:
                if len(given) > len(self._in_order):
                    raise TypeError(f"{type(self).__name__} takes {len(self._in_order)} values in order")
                values.update(zip(self._in_order, given, strict=False))
            setters = self._setters
            if len(values) != len(setters):
                values = self._defaults | values
                if len(values) > len(setters):
                    unknown = ", ".join(name for name in values if name not in self.__slots__)
                    raise TypeError(f"{type(self).__name__} has no {unknown}")
            try:
                for name, put in setters:
                    put(self, values[name])
            except KeyError as missing:
                raise TypeError(f"{type(self).__name__} needs {missing}") from None

        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(f"{type(self).__name__}.{name} is not to be changed")

        def __delattr__(self, name: str) -> None:
            raise AttributeError(f"{type(self).__name__}.{name} is not to be deleted")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._values(self) == self._values(other))

    def __hash__(self) -> int:
        return hash((type(self), self._values(self)))

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={getattr(self, name)!r}" for name in fields(self))
        return f"{type(self).__name__}({inside})"


def fields(record: Record | type[Record]) -> tuple[str, ...]:
    """The names of a record's fields, in order."""
    return record.__slots__


def values(record: Record) -> tuple[object, ...]:
    """What its fields hold, in order."""
    found: Any = record._values(record)
    return found if len(record.__slots__) > 1 else (found,) if record.__slots__ else ()


def replace(record: R, **changes: Any) -> R:
    """A copy with some fields changed."""
    return type(record)(**dict(zip(fields(record), values(record), strict=True)) | changes)


def remembered(most: int = 4) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Keeps the last used results of a function, each with its arguments, which are given in order. A record is the one
    object itself there: comparing whole snapshots would take longer than walking them. ``forget`` drops all results.
    """

    def remembering(function: Any) -> Any:
        results: dict[tuple[object, ...], tuple[object, object]] = {}

        def found(*args: object) -> object:
            key = tuple([(Record, id(each)) if isinstance(each, Record) else each for each in args])
            if (known := results.pop(key, None)) is None:
                known = args, function(*args)
                if len(results) >= most:
                    del results[next(iter(results))]
            results[key] = known
            return known[1]

        found.__name__, found.__doc__ = function.__name__, function.__doc__
        found.__dict__["forget"] = results.clear
        return found

    return remembering
