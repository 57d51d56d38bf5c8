"""Which lines of a long text are read: one budget for each text, spent first on lines that name devices and errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache, partial
from itertools import chain, compress, repeat
from operator import contains

from dgxcheck.limits import READ_CHARACTERS, READ_LINES

_NAMES = ("GPU", "gpu", "NVRM", "nvidia", "NVIDIA", "mlx", "NCCL", "PCI", "Lnk")
_PIECE = 256
"""Lines that are looked at together, and not before those nearer to an end of the text were too few."""
_ALARMS = ("Xid", "rror", "ail", "WARN")


def selected(lines: Sequence[str]) -> Sequence[int]:
    """Numbers, from 0, of the lines that are read: all of a text of usual length, of a longer one as many."""
    if len(lines) <= READ_LINES and sum(map(len, lines)) <= READ_CHARACTERS:
        return range(len(lines))
    holding = cache(partial(_holding, lines))
    pieces = range(0, len(lines), _PIECE)
    chosen: set[int] = set()
    room, left = READ_CHARACTERS, READ_LINES
    for rank in range(_RANKS):
        forth = (number for start in pieces for number in holding(start)[rank])
        back = (number for start in reversed(pieces) for number in reversed(holding(start)[rank]))
        for number in chain.from_iterable(zip(forth, back, strict=True)):  # of too many the beginning and the end
            if number not in chosen and (line := lines[number]) and not line.isspace():
                room -= len(line)
                left -= 1 if number - 1 in chosen or number + 1 in chosen else _ALONE
                if room < 0 or left < 0:
                    return sorted(chosen)
                chosen.add(number)
    return sorted(chosen)


_RANKS = 3
_ALONE = 2
"""Lines for one that stands alone: an empty one, which readers take as long for, parts it from the others."""


def _holding(lines: Sequence[str], start: int) -> tuple[Sequence[int], ...]:
    """Of the piece that begins there: lines that name a device and an error, that name one of both, and all."""
    piece = lines[start : start + _PIECE]
    text = "\n".join(piece)
    named, alarming = (_flags(piece, filter(text.__contains__, words)) for words in (_NAMES, _ALARMS))
    numbers = range(start, start + len(piece))
    both, one = (flags.to_bytes(len(piece), "little") for flags in (named & alarming, named ^ alarming))
    return [*compress(numbers, both)], [*compress(numbers, one)], numbers


def _flags(piece: Sequence[str], words: Iterable[str]) -> int:
    """A byte for each line that is 1 where it holds one of the words, all bytes as one number."""
    flags = 0
    for word in words:
        flags |= int.from_bytes(bytes(map(contains, piece, repeat(word))), "little")
    return flags
