"""The kernel log of a bundle: the same events stand in it up to four times, of several boots.

``dmesg`` is the log of the boot that was running. The logger's files and the journal (a boot under a title of its own)
are filtered by the script for lines with NVRM and nvidia-. They give what dmesg no longer has, and the boots before.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.facts.record import Record
from dgxcheck.readers.bundles.section import Section
from dgxcheck.source.kernel_log.kinds import Lines
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.source.kernel_log.saved import Times, times

_JOURNAL = re.compile(r"(?:.*/|  )?journalctl\b.*? (?:-b|--boot)(?:[ =]-?(?P<back>\d{1,2}))?(?:[ :].*)?")
"""As the script titles the journal of a boot, or the command: that of this boot, or of the one before so many."""
_DATED = re.compile(r"(?P<month>\S{1,12}) +(?P<rest>\d{1,2} \d\d:\d\d:\d\d .*)")
_FILE = ("  /var/log/", "/var/log/")
_NAMED = re.compile(r"(\[ *\d{1,9}\.\d{6}\] )kernel: ")
"""In the saved dmesg of some distributions."""
_BOTH = re.compile(r"\S.{8,60}? \S{1,255} kernel: \[ *(?P<seconds>\d{1,9}\.\d{6})\]")
_SECONDS = re.compile(r"\[ *\d{1,9}\.\d{6}\]")
_LOADS = "NVRM: loading "
"""Of every boot alike."""
_REBOOT = "-- Reboot --"
_JITTER = 1.0
"""Seconds by which rows of one boot may be out of order."""
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
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
    last = next((log.times for log in logs if log.boot == 0), None)
    dmesg = next((log.times for log in logs if log.boot == 0 and log.times.begins is not None), None)
    others = [log for log in logs if log.times is not (dmesg or last)]
    earlier = [log.times.lines for log in sorted(others, key=lambda log: -(log.boot or 0)) if log.boot]
    by_file = [boot for log in others if log.boot is None for boot in (*log.times.earlier, log.times.lines)]
    if dmesg is None:
        if last is None and not by_file and not earlier:
            return ()
        newest = last if last is not None else Times(lines=(by_file or [[]])[-1], begins=None)
        boots = earlier if last is not None else (earlier or by_file[:-1])
        return relevant_lines(Times(lines=newest.lines, begins=newest.begins, earlier=tuple(boots)))
    known = {(round(seconds, _DIGITS), message) for seconds, message in dmesg.lines}
    before: Lines = []
    boots_of_files: list[Lines] = []
    events = {message for _, message in dmesg.lines if not message.startswith(_LOADS)}
    dated = [log.times.lines for log in others if log.boot == 0 and log.times.begins is None]
    for log in others:
        for boot in (*log.times.earlier, log.times.lines) if log.boot is None else ():
            if any((round(seconds, _DIGITS), message) in known for seconds, message in boot):
                before += [line for line in boot if line[0] < (dmesg.begins or 0.0)]
            elif boot is log.times.lines and log.dated and any(message in events for _, message in boot):
                dated.append(boot)  # the log ends with the boot that is running
            else:
                boots_of_files.append(boot)
    if not before and dmesg.begins:
        before = next(filter(None, (_shifted(lines, dmesg) for lines in dated)), [])
    merged = Times(
        lines=[*before, *dmesg.lines], begins=min([dmesg.begins or 0.0, *(seconds for seconds, _ in before)]),
        earlier=tuple(earlier or boots_of_files),
    )  # fmt: skip
    return relevant_lines(merged)


def _log(section: Section) -> _Log | None:
    match = _JOURNAL.fullmatch(section.title)
    found = times("\n".join(_by_boots(_english(section.lines))))
    if found is None:
        return None
    running = section.title.strip().rpartition("/")[2].startswith("dmesg") and not section.title.startswith(_FILE)
    return _Log(boot=int(match["back"] or 0) if match else 0 if running else None, times=found,
                dated=not any(map(_SECONDS.search, section.lines)))  # fmt: skip


def _shifted(lines: Lines, dmesg: Times) -> Lines:
    """Lines with dates on dmesg's clock, those alone that are older than dmesg; none where no message is in both."""
    seconds = {message: at for at, message in reversed(dmesg.lines)}
    offset = next((at - seconds[message] for at, message in lines if message in seconds), None)
    if offset is None:
        return []
    begins = dmesg.begins or 0.0
    return [(at - offset, message) for at, message in lines if 0 <= at - offset < begins - 1 and message not in seconds]


def _by_boots(rows: Sequence[str]) -> list[str]:
    """With the line that journalctl writes between boots, where a dated row's time since boot is below the one before.

    A file that is filtered for the driver's words lacks the kernel's first line of each boot.
    """
    found: list[str] = []
    last = 0.0
    for row in rows:
        if match := _BOTH.match(row):
            since_boot = float(match["seconds"])
            found += [_REBOOT] if since_boot < last - _JITTER else []
            last = since_boot
        found.append(row)
    return found


def _english(rows: Sequence[str]) -> list[str]:
    """journalctl writes months in the language of the box: words that are not English become months in their order.

    Only the order of lines, and the time between them, counts in such a log.
    """
    months: dict[str, str] = {}
    found = []
    for row in rows:
        row = _NAMED.sub(r"\1", row, count=1) if row.startswith("[") else row
        match = _DATED.match(row)
        if match is None or match["month"] in _MONTHS:
            found.append(row)
            continue
        digits = "".join(character for character in match["month"] if character in "0123456789")
        number = int(digits) - 1 if digits and len(digits) < 3 else len(months)
        found.append(f"{months.setdefault(match['month'], _MONTHS[number % 12])} {match['rest']}")
    return found
