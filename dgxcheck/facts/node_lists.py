"""Lists of machines as sites and Slurm write them: ``dgx[001-016,020],login``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice, product

from dgxcheck.facts.missing import BadInput
from dgxcheck.limits import NODE_RANGES, NODES

_BRACKETS = re.compile(r"\[([0-9,-]+)\]")
_RANGE = re.compile(r"(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?")


def unfolded(text: str, most: int = NODES) -> tuple[str, ...]:
    """The names that a folded text stands for. Raises BadInput for what is no such text, or for more names than that.
    """
    shown = " ".join(text[:80].split())
    names = (name for part in _parts(text) for name in _names(part, shown, most))
    found = [*islice(names, most + 1)]
    if len(found) > most:
        raise BadInput(f"{shown}: more than {most} nodes")
    return tuple(dict.fromkeys(found))


def _parts(text: str) -> Iterator[str]:
    """Split at the commas, blanks and line ends outside of brackets."""
    part, inside = "", False
    for character in text:
        inside = character == "[" or (inside and character != "]")
        if not inside and character in ", \t\r\n":
            if part:
                yield part
            part = ""
        else:
            part += character
    if part:
        yield part


def _names(part: str, shown: str, most: int) -> Iterator[str]:
    """One after the other: ``[0-999][0-999]`` is a million, of which nobody asks for more than ``most``."""
    *pieces, after = _BRACKETS.split(part)
    ranges = pieces[1::2]
    if any(mark in piece for piece in (*pieces[::2], after) for mark in "[]"):
        raise BadInput(f"{shown}: not a list of nodes; write them as dgx[001-016,020]")
    if len(ranges) > NODE_RANGES:
        raise BadInput(f"{shown}: more than {NODE_RANGES} ranges in one name")
    for numbers in product(*(_numbers(range_, shown, most) for range_ in ranges)):
        yield "".join(chain.from_iterable(zip(pieces[::2], numbers, strict=True))) + after


def _numbers(ranges: str, shown: str, most: int) -> list[str]:
    """``001-003,007`` as the four numbers, in their width."""
    found: list[str] = []
    for each in ranges.split(","):
        if (span := _RANGE.fullmatch(each)) is None:
            raise BadInput(f"{shown}: {each[:40]!r} is not a range; write nodes as dgx[001-016,020]")
        first, last = span["first"], span["last"] or span["first"]
        if int(last) < int(first):
            raise BadInput(f"{shown}: {each[:40]!r} ends before it begins; write nodes as dgx[001-016,020]")
        width = len(first) if first[0] == "0" else 1
        if len(found) + int(last) - int(first) >= most:
            raise BadInput(f"{shown}: more than {most} nodes")
        found += [f"{number:0{width}}" for number in range(int(first), int(last) + 1)]
    return found
