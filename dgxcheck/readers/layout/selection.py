"""Which lines of a long text are read: one budget for each text, spent first on lines that name devices and errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, compress, repeat
from operator import contains

from dgxcheck.limits import READ_CHARACTERS, READ_LINES

_NAMES = ("GPU", "gpu", "NVRM", "nvidia", "NVIDIA", "mlx", "NCCL", "PCI", "Lnk")
_PIECE = 256
"""Lines that are looked at together."""
_ALARMS = ("Xid", "rror", "ail", "WARN")


def selected(lines: Sequence[str]) -> Sequence[int]:
    """Numbers, from 0, of the lines that are read: all of a text of usual length, of a longer one as many."""
    if len(lines) <= READ_LINES and sum(map(len, lines)) <= READ_CHARACTERS:
        return range(len(lines))
    named, alarming = _holding(lines, _NAMES), _holding(lines, _ALARMS)
    both, one = (_numbers(flags, len(lines)) for flags in (named & alarming, named ^ alarming))
    chosen: set[int] = set()
    room = READ_CHARACTERS
    for numbers in (both, one, range(len(lines))):
        for number in _from_both_ends(numbers):
            if number not in chosen and (line := lines[number]) and not line.isspace():
                room -= len(line)
                if room < 0 or len(chosen) == READ_LINES:
                    return sorted(chosen)
                chosen.add(number)
    return sorted(chosen)


def _holding(lines: Sequence[str], words: Sequence[str]) -> int:
    """A byte for each line that is 1 where it holds one of the words, all bytes as one number.

    The lines of a piece are looked at where the piece holds the word.
    """
    found = bytearray()
    for start in range(0, len(lines), _PIECE):
        piece = lines[start : start + _PIECE]
        text = "\n".join(piece)
        flags = 0
        for word in words:
            if word in text:
                flags |= int.from_bytes(bytes(map(contains, piece, repeat(word))), "little")
        found += flags.to_bytes(len(piece), "little")
    return int.from_bytes(found, "little")


def _numbers(flags: int, count: int) -> Sequence[int]:
    """Those, from 0, whose byte is 1."""
    return [*compress(range(count), flags.to_bytes(count, "little"))]


def _from_both_ends(numbers: Sequence[int]) -> Iterator[int]:
    """The first, the last, the second ..: of too many the beginning and the end are read."""
    return chain.from_iterable(zip(numbers, reversed(numbers), strict=True))
