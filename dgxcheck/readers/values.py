"""Numbers, lines and masks of untrusted text: bounded and finite, else None."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from dgxcheck.facts.missing import Json
from dgxcheck.facts.sysfs import runs_of
from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern
from dgxcheck.limits import LINE_CHARACTERS

MOST_GPUS = 64
"""An index from here on is a garbled one: the largest boxes that print these tables have 16 GPUs."""
MOST_GBS = 100_000.0
"""GB/s; copies inside one B200 reach some 7,000."""
MOST_BYTES = 1 << 40
"""Bytes of a message or buffer."""
LEAST_BYTES = 64 << 10
"""Least size of a message that shows the rate of a link; the time of smaller ones is mostly latency."""
MOST_US = 10_000_000.0
"""us; ten seconds, ten times what the slowest row of a collective takes."""

LINE = "line "
"""Before a number in ``from``, which is that of a line."""
DECORATION = "\ufeff \t\r>|#*`"
"""Characters around a line that was quoted, put into a table or commented out."""

_DECIMAL = ascii_pattern(r"\d{1,15}(?:\.\d{1,9})?")
_WHOLE = ascii_pattern(r"\d{1,20}")
_INDEX = ascii_pattern(r"\d{1,3}")


def number(word: str, most: float) -> float | None:
    """A decimal number from 0 to ``most``; None for ``nan``, ``inf``, ``N/A``, ``-1``, ``1e400`` and other text."""
    if not _DECIMAL.fullmatch(word):
        return None
    value = float(word)
    return value if value <= most else None


def integer(word: str, most: int) -> int | None:
    """A decimal integer from 0 to ``most``."""
    return int(word) if _WHOLE.fullmatch(word) and int(word) <= most else None


def gpu(word: str) -> int | None:
    """A GPU index; None if it is not one or out of range."""
    return int(word) if _INDEX.fullmatch(word) and int(word) < MOST_GPUS else None


def bare(line: str) -> str:
    """A line without quoting and list markers."""
    return line.strip(DECORATION)


def bounded(lines: tuple[str, ...]) -> tuple[str, ...]:
    """The same lines under the same numbers, those that are too long emptied."""
    if max(map(len, lines), default=0) <= LINE_CHARACTERS:
        return lines
    return tuple(line if len(line) <= LINE_CHARACTERS else "" for line in lines)


def squeezed(line: str) -> str:
    """A line without quoting and list markers, with one blank between words."""
    return " ".join(bare(line).split())


@lru_cache(maxsize=4)
def numbered(lines: tuple[str, ...], form: Callable[[str], str] = str.strip) -> tuple[tuple[int, str], ...]:
    """Number, from 0, and text of every line; that of a line that is too long is empty. A hundred readers look at the
    same lines."""
    return tuple(enumerate(map(form, bounded(lines))))


def imported(value: Json, unit: str, *, tool: str, line: int, method: str, **more: Json) -> dict[str, Json]:
    """A ``measure`` fact; ``line`` (from 0) is the line of its number, shown from 1."""
    return {
        "value": value, "unit": unit, "method": method, "tool": tool, "how": "imported", "from": f"{LINE}{line + 1}",
        **more,
    }  # fmt: skip


def relocated(fact: Json, place: Callable[[str], str]) -> Json:
    """A fact with the ``place`` of what each ``from`` in it says, also in its runs and what it has besides."""
    if isinstance(fact, list):
        return [relocated(member, place) for member in fact]
    if not isinstance(fact, dict):
        return fact
    return {name: place(member) if name == "from" and isinstance(member, str) else relocated(member, place)
            for name, member in fact.items()}  # fmt: skip


_MASK = LazyPattern(r"(?:0x)?[0-9a-f]{1,8}(?:,(?:0x)?[0-9a-f]{0,8}){0,255}", flags=re.ASCII | re.IGNORECASE)


def bits(mask: str) -> list[range] | None:
    """The runs of bits that are set; None for what is no mask. hwloc leaves words empty that are 0."""
    if not _MASK.fullmatch(mask):
        return None
    words = [word.lower().removeprefix("0x") for word in mask.split(",")]
    whole = sum(int(word or "0", 16) << 32 * place for place, word in enumerate(reversed(words)))
    return runs_of(bit for bit in range(whole.bit_length()) if whole >> bit & 1)
