"""Forms in which loggers keep the kernel's messages, as rows of ``journalctl -k``: JSON, fields, syslog's protocol.

``journalctl -o json``, ``export`` and ``verbose`` (systemd.journal-fields(7)), ``dmesg -J`` (util-linux), RFC 5424 and
RFC 3164 as they go over the network, ``journalctl -o short-full`` and ``short-unix``.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping

from dgxcheck.facts.missing import members_of
from dgxcheck.kernel_messages.forms import goes_on, is_relevant
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.limits import LOG_LINE_CHARACTERS
from dgxcheck.readers.kernel_log.stamps import ISO, SYSLOG, Months, framed, is_of_program, known_row
from dgxcheck.source.kernel_log.records import from_kernel

_RFC5424 = LazyPattern(
    rf"<(?P<pri>\d{{1,3}})>1 (?P<at>{ISO}) (?P<host>\S{{1,255}}) kernel \S{{1,128}} \S{{1,32}}"
    r" (?:-|\[.{0,400}?\]) ?(?:BOM)?(?P<text>.*)"
)
_RFC3164 = LazyPattern(rf"<(?P<pri>\d{{1,3}})>(?P<row>(?:{ISO}|{SYSLOG}) .*)")
_FULL = LazyPattern(
    r"[A-Z][a-z]{2} (?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,9})?) [A-Z][A-Za-z]{1,4}"
    r" (?P<rest>\S{1,255} kernel: .*)"
)
_UNIX = LazyPattern(r"(?P<at>\d{9,10}\.\d{6}) (?P<rest>\S{1,255} kernel: .*)")
_NAMELESS = LazyPattern(rf"(?P<at>(?:{ISO}|{SYSLOG}) {{1,2}})(?P<host>[A-Za-z0-9][\w.-]{{0,254}}) (?P<text>\S.*)")
"""rsyslog with a template that leaves out the program."""
_CLOCK = LazyPattern(r"(?:\d\d:\d\d:\d\d(?:[.,]\d{1,9})?|\d{1,9}) {1,4}(?P<text>\S.*)")
"""A log that was cut to the time of day, or counted (``uniq -c``)."""
_FIELD = LazyPattern(r"\s{0,8}(?P<name>_{0,2}[A-Z][A-Z0-9_]{1,63})=(?P<value>.*)", flags=re.DOTALL)
_VERBOSE = LazyPattern(r"[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6} \S{1,8} \[s=[0-9a-f]{32};.{1,300}\]")
_TRANSPORT = '"_TRANSPORT"'
_OF_JOURNAL = ("__CURSOR", "__REALTIME_TIMESTAMP", "_BOOT_ID", "_TRANSPORT")
_MEMBER = LazyPattern(r'\s{0,40}"(?P<name>pri|fac|time|msg|caller)": {0,24}(?P<value>[^\s,].*)')
_ASIDE = LazyPattern(r'[\s{}\[\],]{1,60}|\s{0,20}\{?\s{0,20}"dmesg": {0,4}\[?\s{0,20}')
_PRETTY = LazyPattern(r'\s{1,8}"(?P<name>_{0,2}[A-Z][A-Z0-9_]{1,63})" : (?P<value>".*"|\[|null),?\s*', flags=re.DOTALL)
"""A member of an entry of ``journalctl -o json-pretty``."""
NEW_BOOT = "-- Reboot --"
"""As journalctl writes it between boots."""
_LINE_END = "#012"
"""Within a message, as rsyslog writes it: $EscapeControlCharactersOnReceive."""
_MOST_ENDS = 64
"""Within a message that is split: those of the driver have up to five lines."""
_BEFORE_MESSAGE = LazyPattern(
    rf"[\s>]{{0,12}}(?:{ISO}|{SYSLOG}) {{1,2}}[A-Za-z0-9][\w.-]{{0,254}} kernel: ?"
    r"(?:\[ {0,12}\d{1,10}\.\d{1,9}\] )?"
)
_STAMPS, _BEGINS = frozenset(":;="), frozenset("{}[]")
"""Characters of which every date, field and record has one, and those with which JSON begins a line."""
MaybeRows = Iterator[tuple[int, "str | None"]]


def as_rows(lines: tuple[str, ...]) -> MaybeRows:
    """Number and text of every line, with those in one of these forms rewritten as rows of ``journalctl -k``.

    None stands for a line that is only part of an entry, or not the kernel's. A number can occur twice.
    """
    parts, months = _Parts(), Months()
    for number, line in enumerate(lines):
        text = line.strip()
        if not parts.is_open and text[:1] not in _BEGINS and _STAMPS.isdisjoint(text):
            yield number, line
        elif _TRANSPORT not in text and (rows := framed(text)):  # journald says whose entry it is
            yield from ((number, row) for row in rows)
        elif text.startswith("{") and len(text) > 1 and (fields := _object(text)) is not None:
            yield from parts.boots.rows(number, fields)
        elif (found := parts.take(number, line, text)) is not None:
            yield from found
        else:
            bare = text.lstrip("> \t")
            row = None if is_of_program(bare) else known_row(bare, months) or _row(line)
            yield from ((number, each) for each in _of_lines(row))
    yield from parts.end()


def _of_lines(row: str | None) -> list[str | None]:
    """A row for each line of a message of several lines, with the same time.

    Any other message may quote what users write, as those of audit and of file systems do.
    """
    before = _BEFORE_MESSAGE.match(row) if row and _LINE_END in row else None
    if row is None or before is None:
        return [row]
    first, *others = row.split(_LINE_END, _MOST_ENDS)
    form = goes_on(first[before.end() :])
    if form is None or not all(map(form.match, others)):
        return [row]
    return [first, *(f"{before[0]}{other}" for other in others)]


class _Parts:
    """Entries with one field per line; an entry ends where the next begins or at its closing line."""

    def __init__(self) -> None:
        self.boots = _Boots()
        self._entry: dict[str, str] = {}
        self._at = 0
        self._message: dict[str, str] = {}
        self._in_dmesg = False

    @property
    def is_open(self) -> bool:
        """Does the line before belong to an entry that may go on?"""
        return bool(self._entry or self._message or self._in_dmesg)

    def take(self, number: int, line: str, text: str) -> MaybeRows | None:
        """Rows that a line completes; None where it is no part of such an entry."""
        if '"' in text and (member := _MEMBER.fullmatch(line)):
            self._in_dmesg = True
            self._message[member["name"]] = member["value"].rstrip(", \t")
            if "msg" not in self._message:
                return iter([(number, None)])
            row, self._message = _of_dmesg(self._message), {}
            return iter([(number, row)])
        if text == "{" or '"dmesg"' in text or (self._in_dmesg and _ASIDE.fullmatch(line)):
            return iter([(number, None)])
        field = _FIELD.fullmatch(line) or _PRETTY.fullmatch(line)
        if field is not None and (self._entry or field["name"] in _OF_JOURNAL):
            self._entry[field["name"]], self._at = _plain(field["value"]), number
            return iter([(number, None)])
        if _VERBOSE.fullmatch(text):
            rows = [*self.end(), (number, None)]
            self._entry, self._at = {"_TRANSPORT": ""}, number
            return iter(rows)
        if self._entry and text in ("", "}", "},"):
            return iter([*self.end(), (number, None)])
        return None

    def end(self) -> MaybeRows:
        """The row of the entry that is open."""
        entry, self._entry = self._entry, {}
        return self.boots.rows(self._at, entry) if entry else iter(())


def _plain(value: str) -> str:
    """Of JSON the text, of a field of ``-o export`` the value as it is."""
    if value.startswith('"'):
        try:
            return str(json.loads(value))
        except (ValueError, RecursionError):
            return ""
    return value


def _row(line: str) -> str:
    """A line of syslog's protocol, with its facility judged, or of another form with a date; else as it is."""
    text = line.lstrip(" \t>")
    blank = line[: len(line) - len(text)]
    if match := _RFC5424.fullmatch(text):
        return f"{blank}{match['at']} {match['host']} kernel: {match['text']}" if from_kernel(int(match["pri"])) else ""
    if match := _RFC3164.fullmatch(text):
        return blank + match["row"] if from_kernel(int(match["pri"])) else ""
    if match := _FULL.fullmatch(text):
        return f"{blank}{match['at']} {match['rest']}"
    if match := _UNIX.fullmatch(text):
        return f"{blank}[{match['at']}] {match['rest']}"
    if (match := _NAMELESS.fullmatch(text)) and is_relevant(match["text"]) and not is_relevant(text):
        return f"{blank}{match['at']}{match['host']} kernel: {match['text']}"
    if (match := _CLOCK.fullmatch(text)) and is_relevant(match["text"]):
        return blank + match["text"]
    return line


def _object(text: str) -> Mapping[str, str] | None:
    """The fields of a line of ``journalctl -o json``, or of ``dmesg -J`` in one line; None for another text."""
    try:
        found = members_of(json.loads(text.rstrip(",")))
    except (ValueError, RecursionError):
        return None
    if found.keys().isdisjoint(("MESSAGE", "msg")):
        return None
    return {str(name): _text(value) for name, value in found.items()}


def _text(value: object) -> str:
    """A field; its bytes as numbers where journald found it not to be printable."""
    if isinstance(value, list) and all(isinstance(byte, int) and 0 <= byte < 256 for byte in value):
        return bytes(value).decode("utf-8", "replace")
    return value if isinstance(value, str) else str(value)


def _of_dmesg(members: Mapping[str, str]) -> str:
    """``"time": 12.345678`` and ``"msg": ".."`` of one message as a row of dmesg; empty where there is no time."""
    try:
        text = json.loads(members["msg"])
    except (ValueError, RecursionError):
        text = members["msg"].strip('"')
    since = re.fullmatch(r"(\d{1,10})\.(\d{1,6})", members.get("time", ""))
    facility = members.get("fac", '"kern"').strip('"')
    if since is None or facility not in ("kern", "0"):
        return ""
    return _first(f"[{int(since[1]):5}.{since[2]:0<6}] {text}")


def _first(row: str) -> str:
    """Its first line: a program can put lines of its own behind."""
    return row[: 2 * LOG_LINE_CHARACTERS].partition("\n")[0]


class _Boots:
    """Rows of the journal's entries, with journalctl's line between boots."""

    def __init__(self) -> None:
        self._boot = ""

    def rows(self, number: int, fields: Mapping[str, str]) -> MaybeRows:
        """Of an entry that the kernel wrote: host, date and time since boot as far as it has them."""
        if "msg" in fields:
            yield number, _of_dmesg({**fields, "msg": json.dumps(fields["msg"])})
            return
        boot = fields.get("_BOOT_ID", self._boot)
        if self._boot and boot != self._boot:
            yield number, NEW_BOOT
        self._boot = boot
        ours = fields.get("_TRANSPORT") == "kernel" and fields.get("SYSLOG_FACILITY", "0") == "0"
        yield number, (_first(_of_entry(fields)) or None) if ours and "MESSAGE" in fields else None


def _of_entry(fields: Mapping[str, str]) -> str:
    since = _microseconds(fields.get("_SOURCE_MONOTONIC_TIMESTAMP") or fields.get("__MONOTONIC_TIMESTAMP"))
    wall = _microseconds(fields.get("__REALTIME_TIMESTAMP") or fields.get("_SOURCE_REALTIME_TIMESTAMP"))
    text = fields["MESSAGE"]
    if since is not None:
        text = f"[{since // 1000000:5}.{since % 1000000:06}] {text}"
    if wall is None or wall >= 1 << 52:
        return text if since is not None else ""
    day = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(wall // 1000000))
    host = re.sub(r"[^\w.-]", "", fields.get("_HOSTNAME", ""))[:255]
    return " ".join(filter(None, (f"{day}.{wall % 1000000:06}+00:00", host, f"kernel: {text}")))


def _microseconds(word: str | None) -> int | None:
    return int(word) if word and word.isascii() and word.isdecimal() and len(word) < 19 else None
