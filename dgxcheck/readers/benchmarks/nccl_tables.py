"""Rows of nccl-tests and of NCCL 1's test programs, and what the rows show of a collective.

Every release moved columns: ``redop`` and ``root`` come and go with the collective, alltoall heads them and leaves them
empty, and the time was in ms up to 1.0 (heading ``bytes``) and is in us since 2.0 (heading ``size``); see the ``PRINT``
lines in https://github.com/NVIDIA/nccl-tests/tree/v1.0.0/src, v2.0.0, v2.9.0 and v2.13.0. What holds in all of them is
the tail, groups of time, algbw, busbw and errors, and the head, size, count and type.
"""

from __future__ import annotations

import re

from dgxcheck.facts.record import Record
from dgxcheck.readers.values import MOST_GBS, MOST_US, integer, number

MOST_RANKS = 65_536
MOST_BYTES = 1 << 44
BYTES = {
    **dict.fromkeys(("char", "int8", "uint8", "fp8", "f8e4m3", "f8e5m2"), 1),
    **dict.fromkeys(("half", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int", "int32", "uint32", "float", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "double", "float64"), 8),
}
SPARE = 0.1  # of a rate, for times that were rounded
ROUNDED = 0.011  # GB/s
LEAST_FACTOR = 0.49  # bus bandwidth of an algorithm bandwidth: all-gather of two ranks
UNEQUAL = 0.15  # how far a number of ranks computed from rounded rates may be from a whole one


class Columns(Record):
    """A table's heading."""

    head: tuple[str, ...]
    """Up to the first ``time``: ``size``, ``count``, ``type`` and, in some, ``redop`` and ``root``."""
    tail: tuple[str, ...]
    """``time``, ``algbw``, ``busbw``, ``#wrong``, once or twice."""

    @property
    def microseconds(self) -> float:
        """What one of the table's units of time is in us."""
        return 1.0 if self.head[0] == "size" else 1000.0


_GROUP = ("time", "algbw", "busbw", "#wrong")
TODAY = Columns(head=("size", "count", "type", "redop", "root"), tail=(*_GROUP, *_GROUP))
"""Since 2.11."""
BEFORE = Columns(head=("size", "count", "type", "redop"), tail=("time", "algbw", "busbw", "error") * 2)
"""Of all-reduce in 2.0 to 2.10."""


class SizeRow(Record):
    """One size; out of place, as the first group of columns tells."""

    size: int
    count: int
    width: int
    """Bytes of an element; 0 where the type is not known."""
    headed: int
    """How many of the first columns are filled."""
    redop: str
    """``sum``; empty where there is none."""
    root: int
    """-1 where there is none."""
    time_us: float
    algbw: float
    busbw: float
    in_place: float | None
    wrong: int | None
    """Wrong elements in both groups; None where nothing was checked."""


def columns(line: str) -> Columns | None:
    """The heading ``size count type redop root time algbw busbw #wrong time ..``."""
    words = line.split()
    if "time" not in words or words[:1] not in (["size"], ["bytes"]) or "busbw" not in words:
        return None
    first = words.index("time")
    tail = tuple(words[first:])
    return Columns(head=tuple(words[:first]), tail=tail) if first >= 3 and tail[1:3] == ("algbw", "busbw") else None


def row(line: str, heading: Columns) -> SizeRow | None:
    """A row under a heading; its first columns may be fewer than are headed, and its second group may be cut."""
    words = line.split()
    return _row(words, heading) or _cut_row(words, heading)


def _cut_row(words: list[str], heading: Columns) -> SizeRow | None:
    """A row that ends within its second group, where all of its first columns are filled and its rates are the time's.

    In a row that lost columns elsewhere they would not be.
    """
    columns = len(heading.head) + len(_GROUP)
    if len(heading.tail) != 2 * len(_GROUP) or not columns <= len(words) < columns + len(_GROUP):
        return None
    if heading.head[3:] and not words[3].isalpha():
        return None
    found = _row(words[:columns], Columns(head=heading.head, tail=heading.tail[: len(_GROUP)]))
    if found is None:
        return None
    rate = found.size / found.time_us / 1000
    of_the_time = abs(found.algbw - rate) <= rate * SPARE + ROUNDED
    return found if of_the_time and LEAST_FACTOR * found.algbw <= found.busbw <= 2 * found.algbw + ROUNDED else None


def _row(words: list[str], heading: Columns) -> SizeRow | None:
    head, tail = words[: -len(heading.tail)], words[-len(heading.tail) :]
    if not 3 <= len(head) <= len(heading.head) or not re.fullmatch(r"[a-z][a-z0-9]{1,12}", head[2]):
        return None
    size, count = integer(head[0], MOST_BYTES), integer(head[1], MOST_BYTES)
    time = number(tail[0], MOST_US / heading.microseconds)
    rates = [number(word, MOST_GBS) for word in tail[1:3]]
    if size is None or count is None or time is None or rates[0] is None or rates[1] is None:
        return None
    time_us = round(time * heading.microseconds, 3)
    if not _rate_fits_size(size, time_us, rates[0]):
        return None
    redop = next((word for word in head[3:] if word.isalpha() and word != "none"), "")
    root = next((int(word) for word in head[3:] if re.fullmatch(r"\d{1,5}", word, re.ASCII)), -1)
    second = heading.tail.index("time", 3) + 2 if "time" in heading.tail[3:] else 0  # its busbw
    return SizeRow(
        size=size,
        count=count,
        width=BYTES.get(head[2], 0),
        headed=len(head),
        redop=redop,
        root=root,
        time_us=time_us,
        algbw=rates[0],
        busbw=rates[1],
        in_place=number(tail[second], MOST_GBS) if 2 < second < len(tail) else None,
        wrong=_wrong(heading, tail),
    )


def headless(line: str) -> Columns | None:
    """The columns of a row without a heading above it: all of them are there, and none can be another one."""
    count = len(line.split())
    return next(
        (each for each in (TODAY, BEFORE) if count == len(each.head + each.tail) and _is_whole(line, each)), None
    )


def _is_whole(line: str, heading: Columns) -> bool:
    result = row(line, heading)
    return result is not None and result.width > 0 and result.size % (result.count * result.width or 1) == 0


def _rate_fits_size(size: int, time_us: float, algbw: float) -> bool:
    """Whether time and rate belong to the size: in a row that lost columns others stand in their place. The rate may be
    lower, for until 2020 that of all-gather left one rank's part out."""
    return time_us > 0 and algbw <= size / time_us / 1000 * (1 + SPARE) + ROUNDED


def _wrong(heading: Columns, tail: list[str]) -> int | None:
    """The sum of the ``#wrong`` columns. Older releases print the largest error there, which depends on the type."""
    counts = [
        integer(word, MOST_BYTES) for name, word in zip(heading.tail, tail, strict=True) if name in ("#wrong", "wrong")
    ]
    readable = [count for count in counts if count is not None]
    return sum(readable) if readable else None


def operation(rows: tuple[SizeRow, ...], heading: Columns, ranks: int | None) -> str:
    """The collective, from its columns and factors; empty where several fit, as those without ``redop`` since 2.13."""
    large = max(rows, key=lambda size_row: size_row.algbw)
    shared = large.size // (large.count * large.width) if large.count and large.width else 0
    if large.redop and large.root >= 0:
        return "reduce"
    if large.redop:
        return "all_reduce" if shared == 1 else "reduce_scatter" if shared and shared == (ranks or shared) else ""
    if large.root >= 0:
        return "broadcast" if large.busbw == large.algbw else ""
    if heading.head[-1] == "type":
        return "all_gather"
    return "alltoall" if "redop" in heading.head and large.headed == 3 else ""


def _ratio(rows: tuple[SizeRow, ...]) -> float:
    large = max(rows, key=lambda size_row: size_row.algbw)
    return large.busbw / large.algbw if large.algbw else 0.0


def are_many(rows: tuple[SizeRow, ...], op: str) -> bool:
    """Are there more than twenty ranks? The ratio of the rates is then too flat for an exact number."""
    ratio = _ratio(rows)
    if op == "all_reduce":
        return 1.9 < ratio <= 2
    return op in ("all_gather", "reduce_scatter", "alltoall") and 0.95 < ratio <= 1


def ranks_of(rows: tuple[SizeRow, ...], op: str) -> int | None:
    """The number of ranks that the ratio of bus bandwidth to algorithm bandwidth stands for
    (https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md)."""
    ratio = _ratio(rows)
    if op == "all_reduce":
        ranks = 2 / (2 - ratio) if ratio < 2 else 0.0
    elif op in ("all_gather", "reduce_scatter", "alltoall"):
        ranks = 1 / (1 - ratio) if ratio < 1 else 0.0
    else:
        return None
    return round(ranks) if 2 <= round(ranks) <= MOST_RANKS and abs(ranks - round(ranks)) < UNEQUAL else None
