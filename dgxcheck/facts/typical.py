"""What many values have in common, without ``statistics``, whose import takes longer than reading a recording."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from typing import TypeVar

    T = TypeVar("T", bound=Hashable)
    V = TypeVar("V")
    H = TypeVar("H", bound=Hashable)


def gathered(pairs: Iterable[tuple[T, V]]) -> dict[T, list[V]]:
    """The values of each key, keys and values in order of appearance."""
    found: dict[T, list[V]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def majority(values: Iterable[T]) -> T | None:
    """What more than half of them are, of a Counter by its counts; None where there is no such value."""
    counts = Counter(values)
    return next((value for value, count in counts.items() if 2 * count > counts.total()), None)


def unlike_most(values: Mapping[T, H]) -> tuple[H, dict[T, H]]:
    """The most common value, the first of them where several are, and what has another; at least one value."""
    usual = Counter(values.values()).most_common(1)[0][0]
    return usual, {key: value for key, value in values.items() if value != usual}


def odd_one(values: Mapping[T, H], fewest: int = 3) -> Iterator[tuple[T, H, H]]:
    """The only one that differs from all others, of which there are at least ``fewest``; its value, and theirs."""
    usual, different = unlike_most(values) if values else (None, {})
    if len(different) == 1 and usual is not None and len(values) > fewest:
        yield from ((key, value, usual) for key, value in different.items())


def median(values: Iterable[float]) -> float:
    """The middle one in order of size, or the mean of the middle two; ValueError where there is none."""
    if not (ordered := sorted(values)):
        raise ValueError("no value, no median")
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def multimode(values: Iterable[T]) -> list[T]:
    """The most common ones, in order of appearance."""
    counts = Counter(values)
    most = max(counts.values(), default=0)
    return [value for value, count in counts.items() if count == most]
