"""Lines of ``dmesg``, ``journalctl -k``, kern.log and the like in a text, as the log of a machine.

An excerpt is a log of which anything may be left out: nobody knows how far back it reaches, nor how old it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.bdf import as_bdf, nameless
from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.readers.kernel_log.domain import DOMAIN, default_domain
from dgxcheck.readers.kernel_log.hosts import ISO, SYSLOG, Rows, by_host
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded
from dgxcheck.source.kernel_log.kinds import is_relevant
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.kernel_log.records import BDF, OF_HOST
from dgxcheck.source.kernel_log.saved import times

TOOL = "kernel log"
_LEVEL = r"(?:[a-z0-9]{2,9} {0,9}:[a-z]{2,9} {0,9}: )?"
_KERNELS = re.compile(
    rf"{_LEVEL}(?:(?:<\d{{1,5}}>)?\[ {{0,12}}\d{{1,10}}\.\d{{6}}\]"
    rf"|\[[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} {{1,2}}\d{{1,2}} \d\d:\d\d:\d\d \d{{4}}\]"
    rf"|(?:{ISO}|{SYSLOG}) {{1,2}}(?:\S{{1,255}} )?kernel: "
    rf"|\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d,\d{{6}}[+-]\d\d:\d\d).*"
)
"""A row that no program but the kernel's log prints."""
_DATED = re.compile(rf"(?:{ISO}|{SYSLOG}) (?P<text>.*)")
_BRACKETED = re.compile(rf"^\[({ISO})\](?= )")
_HUMAN = re.compile(r"\[(?P<month>[A-Z][a-z]{2}) ?(?P<day>\d{1,2}) (?P<hour>\d\d):(?P<minute>\d\d)\] (?P<text>.*)")
_AFTER = re.compile(r"\[ {0,8}\+(?P<seconds>\d{1,9}\.\d{6})\] (?P<text>.*)")
_BOTH = re.compile(r"\[ {0,8}(?P<seconds>\d{1,9}\.\d{6}) < {0,8}\d{1,9}\.\d{6}>\] (?P<text>.*)")
"""``dmesg -H``: the minute, then seconds since the row before; ``dmesg -d``: seconds since boot, and these."""
_BARE = re.compile(r"(?:\[\.{2,4}\] ?)?(?:kernel: ?)?(?P<text>.*)")
_OF_DRIVER = re.compile(rf"NVRM: |nvidia-nvswitch\d{{1,3}}: |nvidia-nvlink: |[\w-]{{1,64}} {BDF}: |{OF_HOST}")
"""What a line without a time must begin with."""
_MASKED = re.compile(r"(?P<before>NVRM: Xid \()(?:PCI:)?(?P<bdf>[^()]{1,24})(?P<after>\): \d{1,4}\b)")
_APART_S = 3600
"""Between lines that have no time, so that nothing is taken for one moment."""
_WHOLE_S = 1.0
_FOLLOWS = re.compile(r"(?!NVRM|nvidia)")
"""What may belong to the line before it: the parts of a PCIe error."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The log, if it holds any line about a GPU, a fabric, PCIe or trouble of the host.

    Lines without any time are read only where none has one: a program can write such lines into its own record.
    """
    found = ((host, _log(own)) for host, own in by_host(rows_of(lines)).items())
    return tuple(replace(log, host=host) for host, log in found if log is not None)


def rows_of(lines: tuple[str, ...]) -> list[tuple[int, str]]:
    """Number and text of the rows of a log, with the times that ``dmesg -H`` abbreviates written out."""
    return _without_masks([*_timed(bounded(lines))] or [*_untimed(bounded(lines))])


def _log(rows: Rows) -> Imported | None:
    """The rows of one host; None where they tell nothing."""
    log = times("\n".join(row for _, row in rows)) if rows else None
    if log is None or not (log.lines or log.earlier):
        return None
    whole = log.begins is not None and log.begins < _WHOLE_S
    shown = relevant_lines(log if whole else replace(log, begins=None))
    facts: dict[str, Json] = {f"kmsg {number}": line for number, line in enumerate(shown)}
    if domain := default_domain(row for _, row in rows):
        facts[DOMAIN] = domain
    understood = frozenset(number for number, row in rows if row.strip())
    return Imported(tool=TOOL, facts=facts, understood=understood)


def _without_masks(rows: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Rows in which a bus id that somebody made unreadable stands for a GPU that the log does not name."""
    masks: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        address = match["bdf"]
        if as_bdf(address.partition(" ")[0], short=True) is not None:
            return match[0]
        return f"{match['before']}PCI:{masks.setdefault(address, nameless(len(masks)))}{match['after']}"

    return [(number, _MASKED.sub(named, row, count=1)) for number, row in rows]


def _timed(lines: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Number and text of every row with a time, and of the indented rows that go on with it."""
    indent: str | None = None
    clock = float(_APART_S)
    going_on = False
    for number, line in enumerate(lines):
        blank = line[: len(line) - len(line.lstrip(" \t>"))]
        text = _BRACKETED.sub(r"\1", line[len(blank) :])
        row = ""
        if blank == (blank if indent is None else indent):
            if _KERNELS.fullmatch(text) or ((dated := _DATED.fullmatch(text)) and is_relevant(dated["text"])):
                row = text
            elif (human := _human(text, clock)) is not None:
                clock, row = human[0], f"[{human[0]:.6f}] {human[1]}"
        if row:
            indent, going_on = blank, True
            yield number, row
        elif going_on and indent is not None and len(blank) > len(indent):
            yield number, f" {text}"
        else:
            going_on = False


def _untimed(lines: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Messages alone, with times that say nothing but their order."""
    seconds = _APART_S
    for number, line in enumerate(lines):
        match = _BARE.fullmatch(line.strip(" \t>"))
        if match is not None and _OF_DRIVER.match(match["text"]) and is_relevant(match["text"]):
            seconds += 0 if _FOLLOWS.match(match["text"]) else _APART_S
            yield number, f"[{seconds}.000000] {match['text']}"


def _human(text: str, clock: float) -> tuple[float, str] | None:
    """Seconds and text of a row of ``dmesg -H``; None for any other."""
    if (begins := _HUMAN.fullmatch(text)) and begins["month"] in _MONTHS:
        days = 31 * _MONTHS.index(begins["month"]) + int(begins["day"])
        return float(days * _DAY + int(begins["hour"]) * _HOUR + int(begins["minute"]) * _MINUTE), begins["text"]
    if both := _BOTH.fullmatch(text):
        return float(both["seconds"]), both["text"]
    if after := _AFTER.fullmatch(text):
        return clock + float(after["seconds"]), after["text"]
    return None
