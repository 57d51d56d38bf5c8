"""What stands before a message of the kernel where it is no form of a known logger: odd stamps, quotes, sentences.

``[Sun Mar 29 19:20:37]``, months of other languages, Talos (``HOST: kern: warning: [TIME]: ``), a time alone; and the
message in quotes, in a cell of a table, in the JSON of a container's log.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.kernel_messages.forms import is_relevant
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.wording import any_of
from dgxcheck.source.kernel_log.records import MONTHS, from_kernel

ISO, SYSLOG, _STAMP = (any_of("kernel_log/lines", part) for part in ("{ISO}", "{SYSLOG}", "{STAMP}"))
"""Dates of journalctl and of rsyslog, of which the second kind is that of RFC 3164."""
_OWNER = LazyPattern(rf"(?:{ISO}|{SYSLOG}) {{1,2}}(?P<host>[A-Za-z0-9][\w.-]{{0,254}}) kernel:")
_OWNERS = LazyPattern(
    rf'^(?:{ISO}|{SYSLOG}) {{1,2}}(?P<syslog>[A-Za-z0-9][\w.-]{{0,254}}) kernel:'
    r'|"_HOSTNAME" ?: ?"(?P<journal>[\w.-]{1,255})"', flags=re.MULTILINE,
)
_ANYBODY = frozenset(("host", "localhost"))
"""What stands in place of a name, as early in a boot."""
Rows = Sequence[tuple[int, str]]
_CLOCK = r"\d\d:\d\d:\d\d(?:\.\d{1,9})?"
_LIKE_DMESG = LazyPattern(
    r"\[[^\W\d_]{1,6}\.? {1,2}(?P<month>[^\W\d_]{3,10}|\d{1,2}(?:月|월))\.? {1,2}(?P<day>\d{1,2})"
    rf" (?P<time>{_CLOCK})(?: \d{{4}})?\] (?P<text>.*)"
)
"""``dmesg -T`` without the year, or in the language of its user, in which weekdays are words too."""
_LOCAL = LazyPattern(
    rf"(?P<month>[^\W\d_]{{3,10}}|\d{{1,2}}(?:月|월))\.? {{1,2}}(?P<day>\d{{1,2}})\.? (?P<time>{_CLOCK})"
    r" (?P<host>\S{1,255}) kernel: (?P<text>.*)"
)
_TALOS = LazyPattern(
    rf"(?:(?P<host>[A-Za-z0-9][\w.:-]{{0,254}}): )?(?P<who>[a-z]{{2,8}}): {{1,12}}[a-z]{{2,9}}: \[(?P<at>{ISO})\]:"
    r" (?P<text>.*)"
)
_TIME_ALONE = LazyPattern(rf"(?P<time>{_CLOCK}) {{1,4}}(?P<text>.*)")
_OF_KERNEL = LazyPattern(any_of("kernel_log/lines", "message"))
"""No program but the kernel begins a message so."""
_SIGNS = ("NVRM: ", "SXid (", "EDAC MC", "Kernel panic", "pcieport ", "nvidia ", "mlx5_core ", "[Hardware Error]")
_BEFORE = LazyPattern(any_of("kernel_log/lines", "before a message"))
"""What may precede a message: nothing, a stamp with host and facility, cells of a table, a member of JSON, a cell of
CSV, a host's name. Within a sentence or a command it is only quoted."""
_ENDS = {'"': '"', "|": " |"}
"""What ends a message by what stands before it."""


_KMSG = LazyPattern(r"(\d{1,5}),\d{1,20},\d{1,18},[^;]{1,40};")


_OF_DMESG = LazyPattern(_STAMP)
_FRAMED = LazyPattern(rf"(?P<before>{any_of('kernel_log/lines', 'before a row')})(?P<row>{_STAMP} .{{1,2000}})")
"""A row with the kernel's time behind the name of a file or host, a bar, a quotation mark, another time, or a prompt
or sentence on a serial console."""
_NEXT_ROW = LazyPattern(rf"\\n(?={_STAMP} )", "\\n")


def framed(text: str) -> list[str]:
    """The rows of ``dmesg`` or ``dmesg -T`` that a line holds behind something else; several where JSON joins them."""
    match = _FRAMED.fullmatch(text) if "] " in text else None
    if match is None:
        return []
    row, quote = match["row"], match["before"][-1:]
    if quote in "\"'`":
        row = row.partition(quote)[0]
    rows = _NEXT_ROW.split(row) if quote == '"' else [row.removesuffix(" |")]
    return [each.removesuffix("\\n").rstrip() for each in rows]


def is_of_program(text: str) -> bool:
    """Is a row of /dev/kmsg, or of Talos, one that a program wrote?"""
    if match := _KMSG.match(text):
        return not from_kernel(int(match[1]))
    match = _TALOS.fullmatch(text)
    return match is not None and match["who"] != "kern"


def holds_kernel_message(text: str) -> bool:
    """Does a text have a message within that none but the kernel begins so, or a row of its log?"""
    return " kernel: " in text or _OF_KERNEL.search(text) is not None


class Months:
    """English months for those of any language: by number if they have one, else in the order of their appearance."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def english(self, word: str) -> str:
        """``Apr`` of ``april``, ``Nov`` of ``11月``; only the order of lines and the time between them counts."""
        if digits := re.match(r"\d{1,2}", word):
            return MONTHS[(int(digits[0]) - 1) % 12]
        month_name = next((month for month in MONTHS if word[:3].title() == month), None)
        return month_name or MONTHS[self._seen.setdefault(word, len(self._seen)) % 12]


def known_row(text: str, months: Months) -> str | None:
    """A line with an odd stamp as a row of syslog; None for any other."""
    match = _LIKE_DMESG.fullmatch(text)
    if match and not (match["month"] in MONTHS and _OF_DMESG.match(text)):
        return _row(months.english(match["month"]), match["day"], match["time"], "", match["text"])
    if match := _TALOS.fullmatch(text):
        return " ".join(filter(None, (match["at"], match["host"], f"kernel: {match['text']}")))
    if (match := _TIME_ALONE.fullmatch(text)) and _OF_KERNEL.match(match["text"]):
        return _row("Jan", "1", match["time"], "", match["text"])
    if (match := _LOCAL.fullmatch(text)) and match["month"] not in MONTHS:
        return _row(months.english(match["month"]), match["day"], match["time"], match["host"], match["text"])
    return None


def _row(month: str, day: str, time: str, host: str, text: str) -> str:
    return " ".join(filter(None, (f"{month} {day:>2} {time}", host, f"kernel: {text}")))


def embedded(line: str) -> str:
    """A message of the kernel within a line of something else, up to where that ends it; empty where there is none."""
    if not any(sign in line for sign in _SIGNS):
        return ""
    match = _OF_KERNEL.search(line)
    if match is None or not _BEFORE.fullmatch(line[: match.start()][-400:]):
        return ""
    before = line[: match.start()].rstrip(" ")[-1:]
    text = line[match.start() :]
    if end := _ENDS.get(before):
        text = text.partition(end)[0]
    text = text.removesuffix("\\n").rstrip()
    return text if is_relevant(text) else ""


def hosts_of(text: str) -> set[str]:
    """First labels of the hosts of a log in the forms of syslog and of ``journalctl -o json``."""
    return {_label(match["syslog"] or match["journal"]) for match in _OWNERS.finditer(text)} - {""}


def _label(host: str) -> str:
    """Its name without the domain; empty for what stands in place of a name."""
    name = host.partition(".")[0]
    return "" if name in _ANYBODY else name


def by_host(rows: Rows) -> dict[str, list[tuple[int, str]]]:
    """Rows by the first label of their host; all under an empty name where they are of one host or of none.

    A row that names nobody belongs to the host of the row before it.
    """
    found: dict[str, list[tuple[int, str]]] = {}
    owner = ""
    for number, row in rows:
        match = _OWNER.match(row)
        owner = (_label(match["host"]) if match else "") or owner
        found.setdefault(owner, []).append((number, row))
    return found if len(found.keys() - {""}) > 1 else {"": [*rows]}
