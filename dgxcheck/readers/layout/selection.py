"""Which lines of a long text are read: one budget for each text, spent first on lines that name devices and errors."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress, count, repeat
from operator import contains

from dgxcheck.facts.limits import READ_CHARACTERS, READ_LINES

_NAMES = (
    "GPU", "gpu", "NVRM", "nvidia", "NVIDIA", "Tesla", "mlx", "ibp", "NCCL", "PCI", "pci", "Lnk", "Link", "NVL", "EDAC",
    "NV1", "PIX", "SYS",
)  # fmt: skip
_ALARMS = ("Xid", "rror", "RROR", "ail", "AIL", "WARN", "atal", "lost", "fallen", "nable", "orrect")


def selected(lines: Sequence[str]) -> Sequence[int]:
    """Numbers, from 0, of the lines that are read: all of a text of usual length, of a longer one as many."""
    if len(lines) <= READ_LINES and sum(map(len, lines)) <= READ_CHARACTERS:
        return range(len(lines))
    named, alarming = _holding(lines, _NAMES), _holding(lines, _ALARMS)
    others = {*compress(count(), map(str.strip, lines))} - named - alarming
    chosen: list[int] = []
    characters = 0
    for numbers in (named & alarming, named - alarming, alarming - named, others):
        for number in _from_both_ends(sorted(numbers)):
            characters += len(lines[number])
            if characters > READ_CHARACTERS or len(chosen) == READ_LINES:
                return sorted(chosen)
            chosen.append(number)
    return sorted(chosen)


def _holding(lines: Sequence[str], words: Sequence[str]) -> set[int]:
    """Numbers of the lines that hold one of the words."""
    return {number for word in words for number in compress(count(), map(contains, lines, repeat(word)))}


def _from_both_ends(numbers: Sequence[int]) -> list[int]:
    """The first, the last, the second, the last but one ..: of too many the beginning and the end are read."""
    return [number for pair in zip(numbers, reversed(numbers), strict=True) for number in pair][: len(numbers)]
