"""Kernel log as text, as /dev/kmsg, dmesg, journalctl -k and syslog write it, by boots."""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from time import process_time

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record, replace
from dgxcheck.input_file import CpuTime, read_input, read_stdin
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.limits import LOG_BOOTS, LOG_BYTES, LOG_LINE_CHARACTERS, LOG_LINES, LOG_ROW_BYTES, LOG_ROWS
from dgxcheck.rootfs import decode
from dgxcheck.source.kernel_log.records import Kept, Lines, messages
from dgxcheck.source.kernel_log.rows import Message, parsed

_NEW_BOOT = re.compile(r"-- (?:Boot [0-9a-f]{1,32}|Reboot) --\r?")
_EMPTY = re.compile(rb"\n[ \t\r\n]{2,}\n")
_COLOR = re.compile(rb"\x1b\[[0-9;]{0,20}[mK]")
"""Of ``dmesg -L`` and of what a terminal showed."""
_BY_SYSLOG = LazyPattern(
    r"^(?:<\d{1,3}>)?(?:1 )?(?:\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} [ \d]\d )\d\d:\d\d:\d\d(?!,\d{6}[+-])\S{0,16} "
    r"|^\d\d:\d\d:\d\d(?:[.,]\d{1,9})? {1,4}(?:\S{1,255} )?kernel: "
    r"|^MESSAGE\r?$",
    ":",
    "MESSAGE",
    flags=re.MULTILINE,
)
"""Rows with a date, whatever follows, for a user chooses that (``dmesg --time-format iso`` has a comma in it), rows
that were cut to the clock, and a message of several lines in ``journalctl -o export`` (each may look like a field).
"""
_VERBOSE = LazyPattern(r"^([ \t]*)[A-Z][a-z]{2} \d{4}-\d\d-\d\d [\d:.]{15} \S{1,8} \[s=", flags=re.MULTILINE)
_FIELD = LazyPattern(r"^([ \t]*)(?:_TRANSPORT|MESSAGE)=", flags=re.MULTILINE)
"""Of ``journalctl -o verbose``, which indents fields, and further lines of their values more."""
_BY_JOURNAL = LazyPattern(
    r"^(?:-- (?:Journal begins|Logs begin|Boot|Reboot)|(?:sudo )?journalctl )", flags=re.MULTILINE
)
_BACK = 60.0
"""Seconds by which the clock of one boot never goes back."""
_FIRST = "Linux version "


class Times(Record, kw_only=False):
    """The messages of the last boot that a text holds, by their seconds."""

    lines: Lines
    """The last ones of each kind."""
    begins: float | None
    """Seconds since boot from which on no message is left out; None where its times count from something else."""
    earlier: tuple[Lines, ...] = ()
    """Those of the driver in the boots before, in their order; none that a later boot has too."""
    left_out: tuple[tuple[int, str], ...] = ()
    """How many more messages there were of a form and device, with one of them."""
    forgeable: bool = False
    """Rows of syslog, which the kernel need not have written."""
    part: str = ""
    """Which part of a very long file was read; empty where all of it was."""
    cut: str = ""
    """Why what follows was not read."""
    base: float | None = None
    """The date from which the times count, without its time zone, and in 1972 to 1975 without a year; None for boot."""


class _Boot:
    """What one boot has logged."""

    def __init__(self, base: float | None = None) -> None:
        self.base = base
        """The date from which its times count; None for its start."""
        self.last: float | None = None
        """Seconds of its latest message."""
        self.begins: float | None = None
        self.kept = Kept()

    def add(self, seconds: float, message: str) -> None:
        """Take in a message; ``seconds`` is since boot, or a date."""
        if self.last is None:
            self.begins = seconds if self.base is None else 0.0 if message.startswith(_FIRST) else None
        self.last = seconds
        self.kept.add(max(0.0, seconds - (self.base or 0.0)), message)


def load(
    path: str, read: Callable[[str, bytes, CpuTime], Times | None], clock: Callable[[], float] = process_time
) -> Times:
    """What ``read`` makes of the name and the text of a saved log, or of that on stdin (``-``), of a very long one of
    its end. BadInput with one line for whatever is wrong with it.
    """
    time = CpuTime(clock)
    if path == "-":
        path, whole = "stdin", read_stdin(LOG_BYTES)
    else:
        whole = read_input(path, LOG_BYTES, "save the log to a file first")
    raw = _EMPTY.sub(b"\n\n", _COLOR.sub(b"", whole))
    rows = raw.count(b"\n")
    last = raw if rows <= LOG_ROWS else raw.split(b"\n", rows - LOG_ROWS)[-1]
    log = time.whole(path, lambda: read(path, last, time))
    if log is None:
        raise BadInput(f"{path}: not a kernel log; save the output of dmesg or journalctl -k, with timestamps")
    part = log.part if rows <= LOG_ROWS else f"the last {LOG_ROWS} of {rows} lines"
    return replace(log, part=part, cut=time.exceeded, forgeable=is_forgeable(decode(raw)))


def is_forgeable(text: str) -> bool:
    """Is it a file of syslog, to which any user writes as ``kernel`` by ``logger``, and not journalctl's output?

    Nor is it ``journalctl -o verbose`` in which lines of a value are indented, or are not, as fields are, for these any
    user chooses. Of the boots that journalctl heads by a line without a date, and of its command, syslog has none.
    """
    heads = {*_VERBOSE.findall(text)}
    if heads and (heads & (fields := {*_FIELD.findall(text)}) or len(heads) > 1 or len(fields) > 1):
        return True
    return _BY_SYSLOG.search(text) is not None and _BY_JOURNAL.search(text) is None


def times(log: str | bytes, time: CpuTime | None = None) -> Times | None:
    """The messages of a log's text; None where no line of the last boot has the form of a kernel log's.

    The boots before the last are kept apart. The two further lines of a message that has three have its time.
    """
    raw = log if isinstance(log, bytes) else log.encode("utf-8", "replace")
    rows = _rows(raw) if time is None else time.within(_rows(raw))
    parts = _journal(rows) if raw[:LOG_ROW_BYTES].lstrip().startswith(b"{") else _text(rows)
    boots: deque[tuple[Lines, float]] = deque(maxlen=LOG_BOOTS + 1)
    last: _Boot | None = None
    for part in parts:
        of_part = _boots(part)
        boots += [(_of_driver(boot), boot.base or 0.0) for boot in of_part]
        last = of_part[-1] if of_part else None
    if last is None:
        return None
    seen: set[tuple[float, str]] = set()
    earlier = [_new(lines, base, seen) for lines, base in reversed(boots)]
    begins = last.begins
    if begins is not None and last.kept.complete_s is not None:
        begins = max(begins, last.kept.complete_s)
    return Times(last.kept.lines(), begins, tuple(earlier[:0:-1]), tuple(last.kept.left_out()), base=last.base)


def _of_driver(boot: _Boot) -> Lines:
    return [line for line in boot.kept.lines() if line[1].startswith("NVRM: ")][-LOG_LINES:]


def _new(lines: Lines, base: float, seen: set[tuple[float, str]]) -> Lines:
    """Those that are not known yet: a file to which dmesg was written twice has one boot."""
    new = [(seconds, message) for seconds, message in lines if (round(seconds + base, 3), message) not in seen]
    seen.update((round(seconds + base, 3), message) for seconds, message in new)
    return new


def _boots(log: Iterable[Message]) -> list[_Boot]:
    """The boots of one part of a log, those without a message left out."""
    boots: deque[_Boot] = deque(maxlen=LOG_BOOTS + 1)
    boot = _Boot()
    for since_boot, date, message in log:
        if boot.base is None and boot.last is None and since_boot is None:
            boot.base = date
        seconds = since_boot if boot.base is None else date
        if seconds is None:  # of another clock than the lines before: at the time of the last one
            seconds = boot.last or 0.0
        went_back = boot.base is None and boot.last is not None and seconds < boot.last - _BACK
        if went_back or (message.startswith(_FIRST) and boot.base is not None):
            if boot.last is not None:
                boots.append(boot)
            boot = _Boot(None if since_boot is not None else date)
            seconds = since_boot if since_boot is not None else seconds
        boot.add(seconds, message)
    return [other for other in (*boots, boot) if other.last is not None]


def _rows(raw: bytes) -> Iterator[str]:
    """Row by row, so that a log of many short rows takes no memory; what is beyond ``LOG_ROW_BYTES`` is left out."""
    start = 0
    while start <= len(raw):
        end = raw.find(b"\n", start)
        end = len(raw) if end < 0 else end
        yield raw[start : min(end, start + LOG_ROW_BYTES)].decode("utf-8", "replace")
        start = end + 1


def _text(rows: Iterable[str]) -> Iterator[Iterator[Message]]:
    """Messages by part; journalctl writes a line between boots."""
    number = 0

    def part(row: str) -> int:
        nonlocal number
        number += row.startswith("-- ") and _NEW_BOOT.fullmatch(row) is not None
        return number

    return (parsed(of_part) for _, of_part in groupby(rows, part))


def _journal(rows: Iterable[str]) -> Iterator[Iterator[Message]]:
    """``journalctl -k -o json`` by boot: an object per line, with the kernel's own time where journald kept it."""
    return ((message for _, message in part) for _, part in groupby(_entries(rows), lambda entry: entry[0]))


def _entries(rows: Iterable[str]) -> Iterator[tuple[int, Message]]:
    """The number of the boot, and a message."""
    number, boot = 0, None
    for row in rows:
        try:
            entry = json.loads(row) if row.startswith("{") else None
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict) or entry.get("_TRANSPORT") != "kernel":
            continue
        if entry.get("SYSLOG_FACILITY", "0") != "0":
            continue
        if entry.get("_BOOT_ID", boot) != boot:
            number, boot = number + 1, entry["_BOOT_ID"]
        at = str(entry.get("_SOURCE_MONOTONIC_TIMESTAMP") or entry.get("__MONOTONIC_TIMESTAMP"))
        if at.isascii() and at.isdecimal() and len(at) < 19:
            yield from ((number, (int(at) / 1e6, None, line)) for line in messages(_lines(entry.get("MESSAGE"))))


def _lines(message: object) -> list[str]:
    """Text, or its bytes as numbers where journald found it not to be printable."""
    if isinstance(message, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in message):
        message = bytes(message).decode("utf-8", "replace")
    if not isinstance(message, str):
        return []
    return message[: 4 * LOG_LINE_CHARACTERS].encode("utf-8", "replace").decode().split("\n")
