"""Unread lines that mention an error, so that no one takes them for understood."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dgxcheck.kernel_messages.driver_errors import ALARM, mentions_error
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.wording import any_of

_EXPLAINS = LazyPattern(rf"\s{{0,80}}(?:{any_of('alarming', 'explains')})")
_EVENT = LazyPattern(any_of("alarming", "event"))
_TROUBLE = caseless_pattern(rf"\b(?:{any_of('alarming', 'trouble')})\b")
LONGEST = 1000


def alarming(lines: Sequence[str], numbers: Iterable[int]) -> tuple[int, ...]:
    """The numbers, among ``numbers``, of lines that mention an error other than a count of zero."""
    shown = ((number, lines[number][:LONGEST]) for number in numbers)
    return tuple(number for number, line in shown
                 if not _EXPLAINS.match(line) and _EVENT.search(line) and mentions_error(line))  # fmt: skip


def mentions_trouble(lines: Iterable[str]) -> bool:
    """Is there a word of trouble in any of the lines, even one that counts none?"""
    return any(ALARM.search(line[:LONGEST]) or _TROUBLE.search(line[:LONGEST]) for line in lines)
