"""Lines of ``dmesg``, ``journalctl -k``, kern.log and the like in a text, as the log of a machine.

An excerpt is a log of which anything may be left out: nobody knows how far back it reaches, nor how old it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from operator import itemgetter

from dgxcheck.facts.bdf import as_bdf, nameless
from dgxcheck.facts.kernel_log import NO_TIMES
from dgxcheck.facts.missing import BadInput, Json
from dgxcheck.facts.record import replace
from dgxcheck.input_file import CpuTime
from dgxcheck.kernel_messages.forms import FORMS, is_read, is_relevant
from dgxcheck.kernel_messages.gpu import SEVERAL_LINES
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.kernel_log.forms import NEW_BOOT, as_rows
from dgxcheck.readers.kernel_log.stamps import ISO, SYSLOG, Rows, by_host, embedded, hosts_of
from dgxcheck.readers.layout.undo import undone
from dgxcheck.readers.model import Imported
from dgxcheck.readers.values import bounded
from dgxcheck.readers.wording import any_of
from dgxcheck.rootfs import decode
from dgxcheck.source.kernel_log.kmsg import line, relevant_lines
from dgxcheck.source.kernel_log.records import BDF, MONTHS
from dgxcheck.source.kernel_log.saved import Times, is_forgeable, load, times

DOMAIN = "stated iommu-domain"
"""Key of that type."""
_DOMAIN = LazyPattern(r"\] iommu: Default domain type: (Translated|Passthrough)\b")
_TYPES = {"Translated": "DMA", "Passthrough": "identity"}


def default_domain(lines: Iterable[str]) -> str:
    """``DMA`` or ``identity``; empty where the log does not tell."""
    words = {match[1] for line in lines if (match := _DOMAIN.search(line))}
    return _TYPES[words.pop()] if len(words) == 1 else ""


TOOL = "kernel log"
_LEVEL = r"(?:[a-z0-9]{2,9} {0,9}:[a-z]{2,9} {0,9}: )?"
_KERNELS = LazyPattern(rf"{_LEVEL}(?:{any_of('kernel_log/lines', 'row')}).*")
"""A row that no program but the kernel's log prints."""
_DATED = LazyPattern(rf"(?:{ISO}|{SYSLOG}) (?P<text>.*)")
_BRACKETED = LazyPattern(rf"^\[({ISO})\](?= )")
_HUMAN = LazyPattern(r"\[(?P<month>[A-Z][a-z]{2}) ?(?P<day>\d{1,2}) (?P<hour>\d\d):(?P<minute>\d\d)\] (?P<text>.*)")
_AFTER = LazyPattern(r"\[ {0,8}\+(?P<seconds>\d{1,9}\.\d{6})\] (?P<text>.*)")
_BOTH = LazyPattern(r"\[ {0,8}(?P<seconds>\d{1,9}\.\d{6}) < {0,8}\d{1,9}\.\d{6}>\] (?P<text>.*)")
"""``dmesg -H``: the minute, then seconds since the row before; ``dmesg -d``: seconds since boot, and these."""
_EVENT = r"(?:(?:Warning|Normal) {1,20}\w{1,40} {1,20}\S.{0,60}? {1,20}kernel-monitor(?:, \S{1,255})? {1,20})?"
_BEFORE = LazyPattern(rf"^(?:\[\.{{2,4}}\] ?)?{_EVENT}(?:kernel: ?)?")
"""An event of Kubernetes (node-problem-detector's kernel-monitor), or nothing."""
_OF_DRIVER = LazyPattern(
    rf"NVRM: |nvidia-(?:nvswitch\d{{1,3}}|nvlink|uvm|modeset|peermem): |nvidia-fs:|gdrdrv:|infiniband (?:efa_|rdmap)\d"
    rf"|[\w-]{{1,64}} {BDF}(?: [\w.@-]{{1,15}})?: "
)
"""What a line without a time begins with, unless facts are read of its form."""
_ALONE = LazyPattern(r"^([ \t>]{0,12})Xid \(PCI:")
"""Before what lost the name of its driver."""
_MASKED = LazyPattern(r"(?P<before>NVRM: Xid \()(?:PCI:)?(?P<bdf>[^()]{1,24})(?P<after>\): \d{1,4}\b)")
_PSTORE = LazyPattern(
    r"dmesg-\w{1,20}-\d{1,20}:?|(?:Panic|Oops|Emergency|Restart|Shutdown|Unknown)#\d{1,9} Part\d{1,9}"
)
"""Before what the kernel left in persistent storage (fs/pstore/platform.c), and the name of such a file."""
_APART_S = 3600
"""Between lines that have no time, so that nothing is taken for one moment."""
_WHOLE_S = 1.0
_MICRO = 10**6
_FOLLOWS = LazyPattern(r"(?!NVRM|nvidia(?! [\da-f:.]{12}: AER: ))")
"""What may belong to the line before it: the parts of a PCIe error."""
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def read_excerpt(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The log, if it holds any line about a GPU, a fabric, PCIe or trouble of the host.

    Lines without any time are read only where none has one: a program can write such lines into its own record. A log
    of nothing but harmless lines is understood without a fact.
    """
    lines = bounded(lines)
    parts = [*as_rows(lines)]
    rows = [(number, text) for number, text in parts if text is not None]
    timed = [*_timed(rows)]
    forgeable = is_forgeable("\n".join(lines))
    logs = _logs(timed, True, forgeable)
    if not any(facts for _, facts in logs.values()) and (untimed := [*_untimed(rows)]):
        logs = _logs(untimed, False, forgeable)
    of_log = (number for number, text in parts if text is None or _PSTORE.fullmatch(text.strip()))
    some = any(own for own, _ in logs.values())
    aside = frozenset((*of_log, *(number for number, _ in timed)) if some else ())
    idle = {number for own, facts in logs.values() if not facts for number, row in own if row.strip()}
    found = [
        Imported(tool=TOOL, facts=facts, understood=_joined(aside, (number for number, row in own if row.strip())),
                 host=host)
        for host, (own, facts) in logs.items() if facts
    ]  # fmt: skip
    if idle:
        found.append(Imported(tool=TOOL, facts={}, understood=frozenset(idle | aside)))
    return tuple(found)


def _joined(numbers: frozenset[int], more: Iterable[int]) -> frozenset[int]:
    """The same set where it holds all of them: each of ten thousand hosts has one."""
    return numbers if numbers.issuperset(more := (*more,)) else numbers.union(more)


def _logs(
    rows: list[tuple[int, str]], timed: bool, forgeable: bool
) -> dict[str, tuple[list[tuple[int, str]], dict[str, Json]]]:  # fmt: skip
    """By host the rows and their facts."""
    return {host: (own, _facts(own, timed, forgeable)) for host, own in by_host(_without_masks(rows)).items()}


def rows_of(lines: tuple[str, ...]) -> Rows:
    """Number and text of the rows of a log, with the times that ``dmesg -H`` abbreviates written out."""
    rows = [(number, text) for number, text in as_rows(bounded(lines)) if text is not None]
    return _without_masks([*_timed(rows)] or [*_untimed(rows)])


def saved_log(path: str) -> Times:
    """A saved log in the forms of ``dmesg`` and ``journalctl -k``, else as it stands in a text, behind prefixes and
    in forms of other programs. BadInput where there is no row with a time, and where lines of several hosts are read.
    """
    return load(path, _saved)


def _saved(path: str, raw: bytes, time: CpuTime) -> Times | None:
    text = decode(raw)
    return (times(raw, time) if len(hosts_of(text)) < 2 else None) or _pasted(path, tuple(text.splitlines()))


def _pasted(path: str, lines: tuple[str, ...]) -> Times | None:
    """The rows with a time of a text, without what stands before them; of several hosts those of the one whose say
    something.
    """
    layout = undone(bounded(lines))
    found: dict[str, list[tuple[int, str]]] = {}
    for prefix, (numbers, of_prefix) in layout.by_host().items():
        rows = [(numbers[at], row) for at, row in as_rows(tuple(of_prefix)) if row is not None]
        for host, own in by_host(_without_masks([*_timed(rows)] or rows)).items():
            found.setdefault(host or prefix, []).extend(own)
    logs = {host: log for host, own in found.items() if (log := times("\n".join(row for _, row in own))) is not None}
    hosts = sorted(host for host, log in logs.items() if host and (log.lines or log.earlier))
    if len(hosts) > 1 and not _is_renamed(*(logs[host] for host in found if host in hosts)):
        raise BadInput(f"{path}: the logs of {len(hosts)} hosts, as {hosts[0]} and {hosts[1]}; give that of one")
    read = {"", *hosts} if hosts else found.keys()
    rows = sorted((row for host in found.keys() & read for row in found[host]), key=itemgetter(0))
    log, some, there = times("\n".join(row for _, row in rows)), len(layout.kept), len(lines)
    part = f"{some} of {there} lines, first those that name devices and errors" if some < there else ""
    return replace(log, part=part) if log is not None else None


def _is_renamed(first: Times, *later: Times) -> bool:
    """Did the first of these hosts boot, and the other go on by its clock, as once a cloud image has its name?"""
    since = [log.begins if log.begins is not None else _WHOLE_S for log in (first, *later)]
    return len(later) == 1 and since[0] < _WHOLE_S <= since[1] and first.lines[-1:] <= later[0].lines[:1]


def _facts(rows: Rows, timed: bool, forgeable: bool) -> dict[str, Json]:
    """Of the rows of one host, which have times of their own or not; empty where they tell nothing."""
    log = times("\n".join(row for _, row in rows)) if rows else None
    if log is None or not (log.lines or log.earlier):
        return {}
    whole = log.begins is not None and log.begins < _WHOLE_S
    shown = relevant_lines(replace(log, begins=log.begins if whole else None, forgeable=forgeable))
    shown = shown if timed else (line(0.0, NO_TIMES), *shown[1:])
    facts: dict[str, Json] = {f"kmsg {number}": text for number, text in enumerate(shown)}
    if domain := default_domain(row for _, row in rows):
        facts[DOMAIN] = domain
    return facts


def _without_masks(rows: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """Rows in which a bus id that somebody made unreadable stands for a GPU that the log does not name."""
    masks: dict[str, str] = {}

    def named(match: re.Match[str]) -> str:
        address = match["bdf"]
        if as_bdf(address.partition(" ")[0], short=True) is not None:
            return match[0]
        return f"{match['before']}PCI:{masks.setdefault(address, nameless(len(masks)))}{match['after']}"

    return [(number, _MASKED.sub(named, row, count=1)) for number, row in rows]


def _timed(lines: Rows) -> Iterator[tuple[int, str]]:
    """Number and text of every row with a time, and of the rows that go on with it: indented, or, of a message of the
    driver in several lines, as older kernels print them.
    """
    indent: str | None = None
    clock = float(_APART_S)
    going_on = several = False
    for number, whole in lines:
        if not whole:
            going_on = False
            continue
        blank = whole[: len(whole) - len(whole.lstrip(" \t>"))]
        text = _BRACKETED.sub(r"\1", whole[len(blank) :]).rstrip()
        row = ""
        if blank == (blank if indent is None else indent):
            if (
                text == NEW_BOOT
                or _KERNELS.fullmatch(text)
                or ((dated := _DATED.fullmatch(text)) and is_relevant(dated["text"]))
            ):
                row = text
            elif (human := _human(text, clock)) is not None:
                clock, row = human[0], f"[{human[0]:.6f}] {human[1]}"
        if row:
            indent, going_on = blank, True
            several = any(form.is_possible(row) for form in SEVERAL_LINES)
            yield number, row
        elif going_on and indent is not None and (len(blank) > len(indent) or (several and text.startswith("NVRM:  "))):
            yield number, f" {text}"
        else:
            going_on = False


def _untimed(lines: Rows) -> Iterator[tuple[int, str]]:
    """Messages alone, with times that say nothing but their order."""
    seconds, after = _APART_S, 0
    lines = [(number, _ALONE.sub(r"\1NVRM: Xid (PCI:", row, count=1)) for number, row in lines]
    everything = "\n".join(row for _, row in lines)
    if not any(form.is_possible(everything) for form in FORMS):
        return
    for number, whole in lines:
        if not whole:
            continue
        text = _BEFORE.sub("", whole.strip(" \t>"), count=1)
        if not ((_OF_DRIVER.match(text) and is_relevant(text)) or is_read(text)):
            text = embedded(whole)
        if text:
            seconds, after = (seconds, after + 1) if _FOLLOWS.match(text) else (seconds + _APART_S, 0)
            yield number, f"[{seconds + after // _MICRO}.{after % _MICRO:06}] {text}"


def _human(text: str, clock: float) -> tuple[float, str] | None:
    """Seconds and text of a row of ``dmesg -H``; None for any other."""
    if (begins := _HUMAN.fullmatch(text)) and begins["month"] in MONTHS:
        days = 31 * MONTHS.index(begins["month"]) + int(begins["day"])
        return float(days * _DAY + int(begins["hour"]) * _HOUR + int(begins["minute"]) * _MINUTE), begins["text"]
    if both := _BOTH.fullmatch(text):
        return float(both["seconds"]), both["text"]
    if after := _AFTER.fullmatch(text):
        return clock + float(after["seconds"]), after["text"]
    return None
