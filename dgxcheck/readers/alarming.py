"""Unread lines that mention an error, so that no one takes them for understood."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dgxcheck.kernel_messages.driver_errors import ALARM, mentions_error
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern

_EXPLAINS = LazyPattern(
    r"\s{0,80}(?:-{1,2}[A-Za-z]|#|(?:If|When|This|That|These|The|Typically|It|In|For|To|Only|Reset|Note)\b)"
)
"""How a line of a manual, a help page or a letter begins."""
_EVENT = LazyPattern(
    r"\b\d|:|\b(?:GPU|Xid|link|port|mlx)[ _]?\d|\b(?:ERR(?:OR)?|FAIL(?:ED|URE)?|FATAL|CRITICAL|PANIC)\b"
    r"|^\W{0,40}(?:Fail|Fatal|Job for|Unable|Couldn)"
)
"""Signs of an event rather than of prose: a number, a subject, capitals."""
_TROUBLE = caseless_pattern(
    r"\b(?:lost|faults?|faulty|crash(?:ed|es)?|broken|dead|down|missing|overheat\w{0,5}|xid|bad|warn\w{0,5})\b"
)
LONGEST = 1000


def alarming(lines: Sequence[str], numbers: Iterable[int]) -> tuple[int, ...]:
    """The numbers, among ``numbers``, of lines that mention an error other than a count of zero."""
    shown = ((number, lines[number][:LONGEST]) for number in numbers)
    return tuple(number for number, line in shown if _is_alarm(line))


def _is_alarm(line: str) -> bool:
    if _EXPLAINS.match(line) or not _EVENT.search(line):
        return False
    return mentions_error(line)


def mentions_trouble(lines: Iterable[str]) -> bool:
    """Is there a word of trouble in any of the lines, even one that counts none?"""
    return any(ALARM.search(line[:LONGEST]) or _TROUBLE.search(line[:LONGEST]) for line in lines)
