"""The kernel's messages out of a log's rows, as /dev/kmsg, dmesg, journalctl -k and syslog write them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from dgxcheck.kernel_messages.forms import is_drivers
from dgxcheck.source.kernel_log.records import MONTHS, from_kernel, may_follow, messages

_ISO = r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d(?:[.,]\d{1,9})?)(?:Z|[+-]\d\d:?\d\d)?"
_KMSG = re.compile(r"(\d{1,5}),\d{1,20},(\d{1,18}),[^;]{0,40};(.*)")
_SINCE_BOOT = re.compile(r"(?:<(\d{1,5})>)?\[ {0,12}(\d{1,10}\.\d{1,9})\](?:\[ {0,12}[TC]\d{1,10}\])? ?(.*)")
_LEVEL = re.compile(r"([a-z0-9]{2,9}) {0,9}:[a-z]{2,9} {0,9}: ")
_FROM_HOST = re.compile(r"(?:\S{0,255} )?kernel: (.*)")
"""After a date; rsyslog can be told to leave out the host."""
_FROM_HOST_SINCE_BOOT = re.compile(r"\S{1,255} kernel: (.*)")
_AT = (
    re.compile(rf"(?P<iso>{_ISO}) (?P<rest>.*)"),
    re.compile(r"(?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?) (?P<rest>.*)"),
    re.compile(
        r"\[[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) {1,2}(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d) (?P<year>\d{4})\]"
        r" (?P<rest>.*)"
    ),
)
_MICROSECONDS = 6
"""Digits of a time that two records hardly share."""

Message = tuple["float | None", "float | None", str]
"""Seconds since boot, and its date in seconds, as far as the row has them; the text."""


class _Row(NamedTuple):
    """A row that begins a record; a tuple, for a log has a million."""

    since_boot: float | None
    date: float | None
    stamp: str
    """The time since boot as it is written; empty where the row has a date alone."""
    text: str


def parsed(rows: Iterable[str]) -> Iterator[Message]:
    """Per message of the kernel its time and text; rows that are indented belong to the record before them."""
    row: _Row | None = None
    first = _Row(None, None, "", "")
    more: list[str] = []
    dates = _Dates()
    for whole in rows:
        line = whole.rstrip("\r")
        if line[:1] in (" ", "\t"):
            more += [line.strip()] if row is not None else []
            continue
        if more and row is not None:
            yield from _messages(row, [row.text, *more])
            more = []
        elif row is not None:
            yield row.since_boot, row.date, row.text
        row = None
        # what is indented below such a line is a property of the device and no message
        if line[:1].isdecimal() and (kmsg := _KMSG.match(line)):
            if from_kernel(int(kmsg[1])):
                yield from _messages(_Row(int(kmsg[2]) / 1e6, None, "", ""), kmsg[3].split("\\x0a"))
            continue
        row = _row(line, dates)
        if row is None or not _precise(row.stamp):
            continue
        if row.stamp != first.stamp:
            first = row
        elif not may_follow(first.text, row.text):
            row = None
    if row is not None:
        yield from _messages(row, [row.text, *more])


def _messages(row: _Row, lines: list[str]) -> Iterator[Message]:
    return iter([(row.since_boot, row.date, message) for message in messages(lines)])


def _precise(stamp: str) -> bool:
    """Much of what is logged before the clock runs has the time 0."""
    return len(stamp.partition(".")[2]) >= _MICROSECONDS and stamp.strip("0.") != ""


def _row(line: str, dates: _Dates) -> _Row | None:
    """None for a line without a time, and for one that is not the kernel's."""
    if line[:1] not in "[<" and (level := _LEVEL.match(line)) is not None:
        if level[1] != "kern":
            return None
        line = line[level.end() :]
    if boot := _SINCE_BOOT.match(line):
        from_host = _FROM_HOST_SINCE_BOOT.match(boot[3]) if " kernel: " in boot[3] else None
        return _since_boot(boot, from_host[1] if from_host else boot[3])
    if (at := dates.split(line)) is None:
        return None
    from_host = _FROM_HOST.match(at[1])
    text = from_host[1] if from_host else at[1]
    if boot := _SINCE_BOOT.match(text):
        return _since_boot(boot, boot[3], at[0])
    if from_host is None and line[0] != "[" and not is_drivers(text):
        return None  # of another program: its clock is not the log's
    return _Row(None, at[0], "", text)


def _since_boot(match: re.Match[str], text: str, date: float | None = None) -> _Row | None:
    if match[1] is not None and not from_kernel(int(match[1])):
        return None
    return _Row(float(match[2]), date, match[2], text)


class _Dates:
    """Dates as seconds, without their time zone: differences count. Those of syslog have no year."""

    def __init__(self) -> None:
        self._year = 1972  # a leap year takes them all
        self._latest = 0.0

    def split(self, line: str) -> tuple[float, str] | None:
        """Seconds and what follows the date; None for a line that begins with none."""
        if (at := _at(line, self._year)) is None:
            return None
        seconds, rest = at
        if seconds < self._latest - 180 * 86400 and seconds < 5 * 366 * 86400:
            self._year += 1  # past New Year
            seconds += 366 * 86400
        self._latest = seconds
        return seconds, rest


def _at(row: str, year: int) -> tuple[float, str] | None:
    for form in _AT:
        if (match := form.match(row)) is None:
            continue
        parts = match.groupdict()
        if "iso" in parts:
            years, months, days, hours, minutes = (int(match[n]) for n in range(2, 7))
            seconds = float(match[7].replace(",", "."))
        elif parts["month"] in MONTHS:
            years, months, days = int(parts.get("year") or year), MONTHS.index(parts["month"]) + 1, int(parts["day"])
            clock = parts["time"].split(":")
            hours, minutes, seconds = int(clock[0]), int(clock[1]), float(clock[2])
        else:
            return None
        if not (1 <= months <= 12 and years >= 1970):
            return None
        return _timegm()((years, months, days, hours, minutes, 0)) + seconds, parts["rest"]
    return None


@cache
def _timegm() -> Callable[[tuple[int, ...]], int]:
    """Imported where a row has a date: the module reads the locale's names of days, and /dev/kmsg has none."""
    from calendar import timegm

    return timegm
