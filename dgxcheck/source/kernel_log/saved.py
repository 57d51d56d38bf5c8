"""Kernel log as text, as /dev/kmsg, dmesg, journalctl -k and syslog write it, by boots."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.record import Record
from dgxcheck.input_file import read_input
from dgxcheck.source.kernel_log.records import messages
from dgxcheck.source.kernel_log.rows import LONGEST, Message, parsed

MOST_BYTES = 64 << 20
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
    *before, last = map(_boots, _journal(text) if of_journal else map(parsed, _NEW_BOOT.split(text)))
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


def _boots(log: Iterable[Message]) -> list[tuple[Lines, float | None, float]]:
    """The lines of each boot, when its log begins, and the date from which its times count, or 0 for its start."""
    found: list[tuple[Lines, float | None, float]] = []
    lines: Lines = []
    begins: float | None = None
    base: float | None = None
    for since_boot, seconds, message in log:
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


def _journal(text: str) -> list[list[Message]]:
    """``journalctl -k -o json`` by boot: an object per line, with the kernel's own time where journald kept it."""
    found: list[list[Message]] = [[]]
    boot: object = None
    for row in text.split("\n"):
        try:
            entry = json.loads(row) if row.startswith("{") else None
        except (ValueError, RecursionError):
            continue
        if not isinstance(entry, dict) or entry.get("_TRANSPORT", "kernel") != "kernel":
            continue
        if entry.get("SYSLOG_FACILITY", "0") != "0":
            continue
        if entry.get("_BOOT_ID", boot) != boot:
            boot = entry["_BOOT_ID"]
            found.append([])
        at = str(entry.get("_SOURCE_MONOTONIC_TIMESTAMP") or entry.get("__MONOTONIC_TIMESTAMP"))
        if at.isascii() and at.isdecimal() and len(at) < 19:
            found[-1] += [(True, int(at) / 1e6, line) for line in messages(_text(entry.get("MESSAGE")))]
    return found


def _text(said: object) -> list[str]:
    """Text, or its bytes as numbers where journald found it not to be printable."""
    if isinstance(said, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in said):
        said = bytes(said).decode("utf-8", "replace")
    if not isinstance(said, str):
        return []
    return said[:LONGEST].encode("utf-8", "replace").decode().split("\n")
