"""Kernel log as text, as /dev/kmsg, dmesg, journalctl -k and syslog write it: per line, or JSON object, one message."""

from __future__ import annotations

import json
import re
from calendar import timegm
from collections.abc import Iterable, Iterator

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.input_file import read_input

MOST_BYTES = 64 << 20
_LONGEST = 4096
_ISO = r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d(?:[.,]\d{1,9})?)(?:Z|[+-]\d\d:?\d\d)?"
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_KMSG = re.compile(r"\d{1,5},\d{1,20},(\d{1,18}),[^;]{0,40};(.*)")
_SINCE_BOOT = re.compile(r"(?:<\d{1,3}>)?\[ *(\d{1,10}\.\d{1,9})\](?:\[ *[TC]\d+\])? ?(.*)")
_LEVEL = re.compile(r"[a-z0-9]{2,9} *:[a-z]{2,9} *: ")
_FROM_HOST = re.compile(r"\S{1,255} kernel: (.*)")
_AT = (
    re.compile(rf"(?P<iso>{_ISO}) (?P<rest>.*)"),
    re.compile(r"(?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d(?:\.\d{1,9})?) (?P<rest>.*)"),
    re.compile(
        r"\[[A-Z][a-z]{2} (?P<month>[A-Z][a-z]{2}) +(?P<day>\d{1,2}) (?P<time>\d\d:\d\d:\d\d) (?P<year>\d{4})\]"
        r" (?P<rest>.*)"
    ),
)
_NEW_BOOT = re.compile(r"^-- (?:Boot [0-9a-f]{1,32}|Reboot) --\r?$", re.MULTILINE)
_BACK = 60.0
"""Seconds by which the clock of one boot never goes back."""
_FIRST = "Linux version "
_OF_DRIVER = "NVRM: "


Lines = list[tuple[float, str]]


class Times(Record, kw_only=False):
    """The messages of the last boot that a text holds, by their seconds."""

    lines: Lines
    begins: float | None
    """Seconds since boot of its first line; None where its times count from something else."""
    earlier: tuple[Lines, ...] = ()
    """Those of the driver in the boots before, in their order; none that a later boot has too."""


def load(path: str) -> Times:
    """A saved log; BadInput with one line for whatever is wrong with the file."""
    raw = read_input(path, MOST_BYTES, "save the log to a file first")
    found = times(raw.decode("utf-8", "replace"))
    if found is None:
        raise BadInput(f"{path}: not a kernel log; save the output of dmesg or journalctl -k, with timestamps")
    return found


def times(text: str) -> Times | None:
    """Every line's time and message; None where no line has the form of a kernel log's.

    The boots before the last are kept apart. The two further lines of a message that has three have its time.
    """
    of_journal = text.lstrip().startswith("{")
    *before, last = map(_boots, _journal(text) if of_journal else map(_parsed, _NEW_BOOT.split(text)))
    if not last:
        return None
    seen: set[tuple[float, str]] = set()
    earlier = [_fresh(lines, base, seen) for part in (last, *reversed(before)) for lines, _, base in reversed(part)]
    lines, begins, _ = last[-1]
    return Times(lines, begins, tuple(earlier[:0:-1]))


def _fresh(lines: Lines, base: float, seen: set[tuple[float, str]]) -> Lines:
    """Of the driver, and not seen yet: a file to which dmesg was written twice has one boot."""
    found = [
        (seconds, message)
        for seconds, message in lines
        if message.startswith(_OF_DRIVER) and (round(seconds + base, 3), message) not in seen
    ]
    seen.update((round(seconds + base, 3), message) for seconds, message in found)
    return found


def _boots(messages: Iterable[tuple[bool, float, str]]) -> list[tuple[Lines, float | None, float]]:
    """The lines of each boot, when its log begins, and the date from which its times count, or 0 for its start."""
    found: list[tuple[Lines, float | None, float]] = []
    lines: Lines = []
    begins: float | None = None
    base: float | None = None
    for since_boot, seconds, message in messages:
        if not since_boot and base is None and not lines:
            base = seconds
        if since_boot is (base is not None):
            continue  # of another clock than the lines before
        starts = message.startswith(_FIRST)
        if (starts and not since_boot) or (since_boot and lines and seconds < lines[-1][0] - _BACK):
            found.append((lines, begins, base or 0.0))
            lines, base = [], None if since_boot else seconds
        if not lines:
            begins = seconds if base is None else 0.0 if starts else None
        lines.append((seconds - (base or 0.0), message))
    return [each for each in (*found, (lines, begins, base or 0.0)) if each[0]]


def _parsed(text: str) -> Iterator[tuple[bool, float, str]]:
    """Per message: does its time count from boot, the time, the text."""
    before: tuple[bool, float] | None = None
    year = 1972  # syslog's dates have none; a leap year takes them all
    latest = 0.0
    for whole in text.split("\n"):
        row = whole[:_LONGEST].rstrip("\r")
        if kmsg := _KMSG.match(row):
            before = None  # what is indented below belongs to the record and is no message
            for part in kmsg[2].split("\\x0a"):
                yield True, int(kmsg[1]) / 1e6, part
            continue
        if level := _LEVEL.match(row):
            row = row[level.end() :]
        if boot := _SINCE_BOOT.match(row):
            before = (True, float(boot[1]))
            yield *before, _without_host(boot[2])
        elif (at := _at(row, year)) is not None:
            seconds, rest = at
            if seconds < latest - 180 * 86400 and seconds < 5 * 366 * 86400:
                year += 1  # past New Year
                seconds += 366 * 86400
            latest = seconds
            message = _without_host(rest)
            boot = _SINCE_BOOT.match(message)
            before = (True, float(boot[1])) if boot else (False, seconds)
            yield *before, boot[2] if boot else message
        elif row[:1] in (" ", "\t") and row.strip() and before is not None:
            yield *before, row.strip()


def _journal(text: str) -> list[list[tuple[bool, float, str]]]:
    """``journalctl -k -o json`` by boot: an object per line, with the kernel's own time where journald kept it."""
    found: list[list[tuple[bool, float, str]]] = [[]]
    boot: object = None
    for row in text.split("\n"):
        try:
            entry = json.loads(row) if row.startswith("{") else None
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict) or entry.get("_TRANSPORT", "kernel") != "kernel":
            continue
        if entry.get("_BOOT_ID", boot) != boot:
            boot = entry["_BOOT_ID"]
            found.append([])
        at = str(entry.get("_SOURCE_MONOTONIC_TIMESTAMP") or entry.get("__MONOTONIC_TIMESTAMP"))
        if at.isascii() and at.isdecimal() and len(at) < 19:
            found[-1] += [(True, int(at) / 1e6, part) for part in _message(entry.get("MESSAGE"))]
    return found


def _message(said: object) -> list[str]:
    """Text, or its bytes as numbers where journald found it not to be printable."""
    if isinstance(said, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in said):
        said = bytes(said).decode("utf-8", "replace")
    if not isinstance(said, str):
        return []
    return said[:_LONGEST].encode("utf-8", "replace").decode().split("\n")


def _at(row: str, year: int) -> tuple[float, str] | None:
    """A date as seconds, without its time zone: differences count."""
    for form in _AT:
        if (match := form.match(row)) is None:
            continue
        parts = match.groupdict()
        if "iso" in parts:
            years, months, days, hours, minutes = (int(match[n]) for n in range(2, 7))
            seconds = float(match[7].replace(",", "."))
        elif parts["month"] in _MONTHS:
            years, months, days = int(parts.get("year") or year), _MONTHS.index(parts["month"]) + 1, int(parts["day"])
            clock = parts["time"].split(":")
            hours, minutes, seconds = int(clock[0]), int(clock[1]), float(clock[2])
        else:
            return None
        if not (1 <= months <= 12 and years >= 1970):
            return None
        return timegm((years, months, days, hours, minutes, 0)) + seconds, parts["rest"]
    return None


def _without_host(text: str) -> str:
    found = _FROM_HOST.match(text)
    return found[1] if found else text
