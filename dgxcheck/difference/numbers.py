"""Compare numbers, versions and modes by tables of quantities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

from dgxcheck.difference.matching import Matched
from dgxcheck.difference.model import Area, Difference, Side, Trend, Value, arrow, judged
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device

Better = Literal["more", "less", "neither"]


class ComparedQuantity(Record, kw_only=False):
    """A fact to compare: its name, and how to read it from a record of the snapshot."""

    area: Area
    what: str
    read: Callable[[Any], Any]
    """A value, Missing, or None where there is nothing to compare."""
    better: Better = "neither"
    unit: str = ""
    tolerance: float = 0.0
    """Relative; smaller differences are ignored."""
    words: Mapping[int, str] = {}
    """Names of the values of an enumeration."""


def of_gpus(
    old: Side, new: Side, devices: Matched, table: Sequence[tuple[str, ComparedQuantity]]
) -> Iterator[Difference]:
    """Differences of the quantities of each GPU; replaced boards are not compared."""
    for pair in devices.gpus:
        if not pair.same:
            continue
        for field, quantity in table:
            before, after = row_of(old, field, pair.old), row_of(new, field, pair.new)
            yield from compared(before, after, quantity, pair.either.name, pair.either.bdf)


def row_of(side: Side, field: str, device: Device | None) -> Any:
    """A GPU's record in a field of the snapshot; None where it has none."""
    bdf = device.bdf if device else None
    rows = getattr(side.snapshot, field)
    if field == "gpu" and not isinstance(rows, Missing):
        rows = rows.gpus
    return None if isinstance(rows, Missing) else next((row for row in rows if row.bdf == bdf), None)


def compared(old: Any, new: Any, quantity: ComparedQuantity, device: str, bdf: str | None) -> Iterator[Difference]:
    """The difference of one quantity between two records, where both have it."""
    if old is None or new is None or isinstance(old, Missing) or isinstance(new, Missing):
        return
    was, now = value(quantity.read(old)), value(quantity.read(new))
    if was is None or now is None or was == now or _within(was, now, quantity.tolerance):
        return
    yield Difference(
        kind=kind_of(was, now, quantity.better), area=quantity.area, change="changed", device=device, bdf=bdf,
        what=quantity.what, old=was, new=now, unit=quantity.unit,
        message=f"{quantity.what.replace('-', ' ')}: {_words(was, now, quantity)}",
    )  # fmt: skip


def kind_of(old: Value, new: Value, better: Better) -> Trend:
    """Neutral for what has no order."""
    if better == "neither" or isinstance(old, str) or isinstance(new, str) or old is None or new is None:
        return "neutral"
    return judged(old, new, better == "more")


def value(fact: Any) -> Value:
    """A fact as a number or text; None for Missing."""
    if isinstance(fact, str):
        return fact.strip() or None
    return fact if isinstance(fact, bool | int | float) else None


def _within(old: Value, new: Value, tolerance: float) -> bool:
    if isinstance(old, str) or isinstance(new, str) or old is None or new is None:
        return False
    return abs(new - old) <= tolerance * max(abs(old), abs(new))


_DISPLAY_UNITS = {"mW": (1000, "W"), "bytes": (1 << 30, "GiB"), "kB": (1 << 20, "GiB")}
"""Unit of a fact to divisor and display unit."""


def _words(old: Value, new: Value, quantity: ComparedQuantity) -> str:
    if quantity.words:
        old, new = (quantity.words.get(value, value) if isinstance(value, int) else value for value in (old, new))
    size, unit = _DISPLAY_UNITS.get(quantity.unit, (1, quantity.unit))
    if size > 1 and isinstance(old, int | float) and isinstance(new, int | float):
        return arrow(f"{old / size:.4g}", f"{new / size:.4g}", unit)
    return arrow(_word(old), _word(new), unit)


def _word(value: Value) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
