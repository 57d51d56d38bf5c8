"""The kernel log of a bundle: the same events stand in it up to four times, of several boots.

``dmesg`` is the log of the boot that was running. The logger's files and the journal (a boot under a title of its own)
are filtered by the script for lines with NVRM and nvidia-. They give what dmesg no longer has, and the boots before.
"""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.bundles.sections import Section
from dgxcheck.readers.kernel_log.stamps import Months
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.kernel_log.records import MONTHS, Lines
from dgxcheck.source.kernel_log.saved import Times, times

_JOURNAL = LazyPattern(r"(?:.*/|  )?journalctl\b.*? (?:-b|--boot)(?:[ =]-?(?P<back>\d{1,2}))?(?:[ :].*)?")
"""As the script titles the journal of a boot, or the command: that of this boot, or of the one before so many."""
_DATED = LazyPattern(r"(?P<month>\S{1,12}) +(?P<rest>\d{1,2} \d\d:\d\d:\d\d .*)")
_FILE = ("  /var/log/", "/var/log/")
_NAMED = LazyPattern(r"(\[ *\d{1,9}\.\d{6}\] )kernel: ")
"""In the saved dmesg of some distributions."""
_BOTH = LazyPattern(r"\S.{8,60}? \S{1,255} kernel: \[ *(?P<seconds>\d{1,9}\.\d{6})\]")
_SECONDS = LazyPattern(r"\[ *\d{1,9}\.\d{6}\]")
_STAMP = LazyPattern(
    r"\d{4}-(?P<number>\d\d)-(?P<day>\d\d)[T ](?P<clock>\d\d:\d\d:\d\d)"
    r"|(?P<month>\S{1,12}) +(?P<of_month>\d{1,2}) (?P<at>\d\d:\d\d:\d\d) "
)
_LOADS = "NVRM: loading "
"""Logged in every boot, so no sign of a particular one."""
_FIRST = " kernel: Linux version "
_REBOOT = "-- Reboot --"
_JITTER = 1.0
"""Seconds by which rows of one boot may be out of order."""
_DIGITS = 3
"""Two logs of one clock agree to so many digits after the point."""


class _Log(Record):
    """One section's log, and of which boot it is: 0 for the one that was running, None where that is not told."""

    boot: int | None
    times: Times
    dated: bool
    """With dates alone, to the second: no time in it is equal to one of dmesg."""


def kernel_log(sections: Sequence[Section]) -> tuple[str, ...]:
    """Lines as ``Source.kernel_log`` gives them; empty where no section holds a log."""
    logs = [log for section in sections if (log := _log(section)) is not None]
    if not logs:
        return ()
    last = next((log.times for log in logs if log.boot == 0), None)
    dmesg = next((log.times for log in logs if log.boot == 0 and log.times.begins is not None), None)
    others = [log for log in logs if log.times is not (dmesg or last)]
    earlier = [log.times.lines for log in sorted(others, key=lambda log: -(log.boot or 0)) if log.boot]
    by_file = [boot for log in others if log.boot is None for boot in (*log.times.earlier, log.times.lines)]
    if dmesg is None:
        newest = last if last is not None else Times(lines=(by_file or [[]])[-1], begins=None)
        boots = earlier if last is not None else (earlier or by_file[:-1])
        return relevant_lines(Times(lines=newest.lines, begins=newest.begins, earlier=tuple(boots)))
    printed = {(round(seconds, _DIGITS), message) for seconds, message in dmesg.lines}
    before: Lines = []
    boots_of_files: list[Lines] = []
    events = {message for _, message in dmesg.lines if not message.startswith(_LOADS)}
    dated = [log.times.lines for log in others if log.boot == 0 and log.times.begins is None]
    for log in others:
        for boot in (*log.times.earlier, log.times.lines) if log.boot is None else ():
            if any((round(seconds, _DIGITS), message) in printed for seconds, message in boot):
                before += [line for line in boot if (round(line[0], _DIGITS), line[1]) not in printed]
            elif boot is log.times.lines and log.dated and any(message in events for _, message in boot):
                dated.append(boot)  # the log ends with the boot that is running
            else:
                boots_of_files.append(boot)
    if not before:
        before = next(filter(None, (_lacking(lines, dmesg) for lines in dated)), [])
    merged = Times(
        lines=sorted([*before, *dmesg.lines], key=lambda line: line[0]),
        begins=min([dmesg.begins or 0.0, *(seconds for seconds, _ in before)]),
        earlier=tuple([*_older(sections), *earlier] if earlier else boots_of_files),
    )  # fmt: skip
    return relevant_lines(merged)


def _older(sections: Sequence[Section]) -> Sequence[Lines]:
    """The boots older than the journal, from the log file that goes back furthest."""
    journals = [section for section in sections if _JOURNAL.fullmatch(section.title)]
    begin = min((stamp for section in journals for row in section.lines if (stamp := _stamp(row))), default=None)
    found: list[Sequence[Lines]] = [[]]
    for section in sections:
        older = [row for row in section.lines if begin and (stamp := _stamp(row)) and stamp < begin]
        log = times("\n".join(_by_boots(older))) if older else None
        found += [(*log.earlier, log.lines)] if log is not None else []
    return max(found, key=len)


def _stamp(row: str) -> tuple[int, int, str] | None:
    """Month, day and time of a row, which is all that every logger writes; None where the month's name is not known."""
    match = _STAMP.match(row)
    if match is None:
        return None
    if match["number"]:
        return int(match["number"]), int(match["day"]), match["clock"]
    word, day = match["month"], match["of_month"]
    if word in MONTHS:
        return MONTHS.index(word) + 1, int(day), match["at"]
    digits = word.rstrip("月")
    return (int(digits), int(day), match["at"]) if digits.isascii() and digits.isdecimal() else None


def _log(section: Section) -> _Log | None:
    match = _JOURNAL.fullmatch(section.title)
    found = times("\n".join(_by_boots(_english(section.lines), one=match is not None)))
    if found is None:
        return None
    running = section.title.strip().rpartition("/")[2].startswith("dmesg") and not section.title.startswith(_FILE)
    return _Log(boot=int(match["back"] or 0) if match else 0 if running else None, times=found,
                dated=not any(map(_SECONDS.search, section.lines)))  # fmt: skip


def _lacking(lines: Lines, dmesg: Times) -> Lines:
    """What dmesg lacks of the lines of its boot that have dates, on dmesg's clock.

    The kernel overwrites its oldest messages: of equal ones dmesg has the last. Where it has none of them, all are
    older than it, or, where they span more time than the boot had until then, begin with it.
    """
    left = gathered((message, seconds) for seconds, message in dmesg.lines)
    lacking: Lines = []
    offset = None
    for at, message in reversed(lines):
        same = left.get(message)
        if same:
            seconds = same.pop()
            offset = at - seconds if offset is None else offset
        else:
            lacking.append((at, message))
    if offset is None:
        offset = min(lines[-1][0] - (dmesg.begins or 0.0) + 1, lines[0][0]) if lines else 0.0
    return [(max(0.0, at - offset), message) for at, message in reversed(lacking)]


def _by_boots(rows: Sequence[str], one: bool = False) -> list[str]:
    """With the line that journalctl writes between boots, where a dated row's time since boot is below the one before.

    A file that is filtered for the driver's words lacks the kernel's first line of each boot; where its rows have dates
    alone, a boot begins where the driver is loaded. ``one``: the log of a single boot, in which it may be loaded again.
    """
    found: list[str] = []
    last = 0.0
    dated = not one and not any(_SECONDS.search(row) or _FIRST in row for row in rows)
    for row in rows:
        if match := _BOTH.match(row):
            since_boot = float(match["seconds"])
            found += [_REBOOT] if since_boot < last - _JITTER else []
            last = since_boot
        elif dated and f" kernel: {_LOADS}" in row:
            found.append(_REBOOT)
        found.append(row)
    return found


def _english(rows: Sequence[str]) -> list[str]:
    """journalctl writes months in the language of the box: words that are not English become months in their order.

    Only the order of lines, and the time between them, counts in such a log.
    """
    months, found = Months(), []
    for row in rows:
        row = _NAMED.sub(r"\1", row, count=1) if row.startswith("[") else row
        match = _DATED.match(row)
        if match and match["month"] not in MONTHS:
            row = f"{months.english(match['month'])} {match['rest']}"
        found.append(row)
    return found
