"""What stands before every line: numbers of an editor, times, containers, ranks of MPI, hosts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from dgxcheck.lazy_pattern import LazyPattern, ascii_pattern, caseless_pattern
from dgxcheck.readers.kernel_log.stamps import holds_kernel_message
from dgxcheck.readers.layout.lines import is_prose, runs
from dgxcheck.readers.layout.prompts import prompt
from dgxcheck.readers.wording import any_of

_CLOCK, _ZONE, _DATE, _NAME, _NHC = (
    any_of("layout/lines", part) for part in ("{CLOCK}", "{ZONE}", "{DATE}", "{NAME}", "{NHC}")
)
_TIME = LazyPattern(
    rf"(?:\[(?:{_DATE}[T ])?{_CLOCK}{_ZONE}\]"
    rf"|(?!\d{{1,2}}:\d\d:\d\d\.[0-7] )(?:{_DATE}[T ])?{_CLOCK}{_ZONE}(?:,\d{{1,3}})?(?= |\t|: |$|\|))"
    r"(?: - |:(?= ))?[ \t]?"
)
"""A time of a container's log or of a wrapper: ISO 8601 with a blank or T, or in brackets. ``1:4b:00.0`` is the first
line of ``lspci | grep -n``."""
_WORDS = LazyPattern(any_of("layout/lines", "before a line"))
KERNEL = LazyPattern(
    rf"(?:{_NAME} )?(?:kernel: ?)?(?:\[ {{0,8}}\d{{1,9}}\.\d{{1,9}}\] )?(?:{any_of('layout/lines', 'kernel')})"
    rf"|{_NAME} kernel:|kernel:"
)
"""How a message of the kernel goes on: the time before it is its own, unless it has another."""
_SINCE_BOOT = LazyPattern(r"\[ {0,12}\d{1,10}\.\d{6}\] ")
_SPEAKER = LazyPattern(any_of("layout/lines", "speaker"))
"""Who speaks for itself: its name belongs to the line."""
_CLOCKED = LazyPattern(_CLOCK)
_OF_PROGRAM = LazyPattern(rf"{_CLOCK}.{{0,40}} {_NAME} [\w./-]{{1,60}}(?:\[\d{{1,9}}\])?: ?$")
"""Of syslog: what a program logs stays its own, whatever it holds, for any user can write it."""
_HOST = LazyPattern(rf"(?P<host>{_NAME})(?::(?: |$)| \| (?={_NHC}))")
"""As pdsh and clush write it, or a cluster's run of Node Health Check, where each host has a line or two."""
_POD = LazyPattern(rf"\[pod/(?P<pod>{_NAME})/{_NAME}\] ?(?P<text>)")
"""Pod and container, as ``kubectl logs --prefix`` writes them."""
_POD_OF_STERN = ascii_pattern(
    r"(?P<pod>[a-z][a-z0-9.-]{1,240}-[bcdfghjklmnpqrstvwxz2456789]{5}) [a-z][a-z0-9-]{0,62}(?: |$)(?P<text>)"
)
"""The same as stern writes them (https://github.com/stern/stern, README: the default of ``--output``).

The name of a pod ends with five of the signs of which Kubernetes makes names
(k8s.io/apimachinery/pkg/util/rand: alphanums). A column of a table has more blanks behind it.
"""
_OF_STERN = LazyPattern(r"[+-] \S{1,300}(?: \S{1,300})? \u203a \S{1,100}", " \u203a ")
"""Where it begins to follow a container, or ends."""
_RANK = LazyPattern(r" {0,12}\d{1,4}:(?: |$)")
_TAG = LazyPattern(r" {0,12}\[\d{1,5}\]")
_BYTES = ascii_pattern(r"\s{0,12}[0-9a-f]{2,3}:(?: [0-9a-f]{2}){16}\s*")
"""A row of ``lspci -x``: its offset is no rank and no host."""
_DEVICE = caseless_pattern(
    r"(?:gpu|nic|mlx|link|nvme|ib|eth|bond|dm|ata|rank|cpu|mc|nvidia-nvswitch)-?_?(?:0|[1-9]\d*)(?:_\d+|\.\d\d)?"
    r"|mlx[45]_(?:core|ib|en)|en[opsx]\d\w{0,12}|sd[a-z]{1,2}\d{0,3}"
)
"""Devices are numbered without leading zeros: ``gpu01`` is a host."""
_OF_DELL = LazyPattern(r"(?:PCI|CPU|MEM|PSU|FAN|TMP|VLT)\d{4}(?::|\b)")
"""Ids of a Dell iDRAC's messages, which begin no host's line; the time before one is its own."""
_FIRST = frozenset("[(0123456789-/ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_LABELS = LazyPattern(any_of("layout/lines", "label"))
"""Words that begin several lines of tools and logs, followed by a colon."""
PREFIXES_FEWEST = 3
"""Lines in a row that begin alike before a word with a digit counts as a prefix."""
WORDS = 12
"""And before a word without one does."""
_DIGIT = LazyPattern(r"\d|-")


def without_times(lines: Sequence[str]) -> list[str]:
    """Lines without the times and names that a program put before them; messages of the kernel keep theirs."""
    return [_bare(line) if line.strip()[:1] in _FIRST else line for line in lines]


def _bare(line: str) -> str:
    for _ in range(4):
        text = line.lstrip()
        words = _WORDS.match(text)  # first: a time may only begin them
        match = words or _TIME.match(text)
        if match is None:
            break
        rest = text[match.end() :]
        of_kernel = _CLOCKED.search(match[0]) and KERNEL.match(rest.lstrip()) and not _SINCE_BOOT.match(rest.lstrip())
        quoted = words and _OF_PROGRAM.search(match[0]) and holds_kernel_message(rest)
        of_bmc = not words and _OF_DELL.match(rest.lstrip())
        if of_kernel or quoted or of_bmc or (words and _SPEAKER.search(match[0])):
            break
        line = rest
    return line


def without_hosts(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines without the host before each (pdsh, clush), and these hosts: of names that several lines in a row have."""
    names = [_host(line) for line in lines]
    if _all_of_hosts(lines, names):
        bare = [_HOST.sub("", line.lstrip(), count=1) for line in lines]
        return bare, [name.partition(".")[0] for name in names]
    counted = Counter(names)
    found, hosts = [*lines], [""] * len(lines)
    named = [bool(name) and (counted[name] >= PREFIXES_FEWEST or " | " in line)
             for line, name in zip(lines, names, strict=True)]  # fmt: skip
    for start, end in runs(named, bool):
        if _is_run(lines[start:end], names[start:end]):
            for at in range(start, end):
                hosts[at] = names[at].partition(".")[0]
                found[at] = _HOST.sub("", lines[at].lstrip(), count=1)
    return found, hosts


def _all_of_hosts(lines: Sequence[str], names: Sequence[str]) -> bool:
    """Has every line the name of a host with a number, however few there are? ``nvidia-smi -L`` over pdsh."""
    having = [name for line, name in zip(lines, names, strict=True) if line.strip()]
    return len(having) > 1 and all(re.search(r"\d", name) for name in having)


def _is_run(lines: Sequence[str], names: Sequence[str]) -> bool:
    """Are these the lines of hosts? Names with a digit or a dash, or one word before many lines; all at one margin."""
    if len(lines) < PREFIXES_FEWEST or len({len(line) - len(line.lstrip()) for line in lines}) > 1:
        return False
    return all(map(_DIGIT.search, names)) or (len(set(names)) == 1 and len(lines) >= WORDS)


def _host(line: str) -> str:
    match = _HOST.match(line.lstrip())
    name = match["host"] if match else ""
    return (
        "" if name.isdigit() or _BYTES.fullmatch(line) or _LABELS.fullmatch(name.lower()) or _DEVICE.fullmatch(name)
        or _OF_DELL.fullmatch(name) else name
    )


def without_ranks(lines: Sequence[str]) -> list[str]:
    """Lines without the number of the task (srun -l) before each, or the tag (mpirun) before and within."""
    tags = [match[0].lstrip() if (match := _TAG.match(line)) else "" for line in lines]
    ranks = [match[0] if (match := _RANK.match(line)) and not _BYTES.fullmatch(line) else "" for line in lines]
    if _all_alike(lines, tags):
        return [line.replace(tag, " ") if tag else line for line, tag in zip(lines, tags, strict=True)]
    if _all_alike(lines, ranks):
        return [line[len(rank) :] for line, rank in zip(lines, ranks, strict=True)]
    return [*lines]


def without_pods(lines: Sequence[str]) -> tuple[list[str], list[str]]:
    """Lines without the pod and the container before each (kubectl, stern), and these pods where there are several."""
    found = [_POD.match(line.lstrip()) for line in lines]
    if not any(found) and any(found := _of_stern(lines)):
        lines = ["" if _OF_STERN.fullmatch(line) else line for line in lines]
    several = len({match["pod"] for match in found if match}) > 1
    bare = [match.string[match.start("text") :] if match else line for match, line in zip(found, lines, strict=True)]
    return bare, [match["pod"] if match and several else "" for match in found]


def _of_stern(lines: Sequence[str]) -> list[re.Match[str] | None]:
    """The prefix of every line of a block that no line of an output adjoins."""
    found = [_POD_OF_STERN.match(line.lstrip(" ")) for line in lines]
    having = [at for at, match in enumerate(found) if match]
    if len(having) >= PREFIXES_FEWEST:
        first, end = having[0], having[-1] + 1
        others = ["" if _OF_STERN.fullmatch(line) else line for line in lines]
        is_whole = len(having) == sum(bool(line.strip()) for line in others[first:end])
        is_table = all(match.string.startswith(" ", match.start("text")) for match in found if match)
        if is_whole and not is_table and _apart(others, first - 1) and _apart(others, end):
            return found
    return [None for _ in lines]


def _all_alike(lines: Sequence[str], begin: Sequence[str]) -> bool:
    """Do nearly all lines from the first to the last that begin so do?"""
    having = [at for at, each in enumerate(begin) if each]
    within = lines[having[0] : having[-1] + 1] if having else []
    most = max(Counter(filter(None, begin)).values(), default=0)
    return most >= PREFIXES_FEWEST and 10 * len(having) >= 9 * sum(bool(line.strip()) for line in within)


_NUMBER = LazyPattern(
    r"\s{0,24}(\d{1,6})(?! \| (?:\d\d/\d\d/\d|Pre-Init))"
    r"(?: {0,2}\\?[:|.)-](?![0-9a-f]{2}(?::|\.[0-7](?:\s|$))) ?|\t| {1,4}|$)"
)
"""Events of a BMC have numbers of their own; Markdown puts a backslash before a bar."""
_COUNT = LazyPattern(r"\s{0,24}\d{1,6}(?:\t| {1,4}|$)")
_BEFORE_BDF = ascii_pattern(
    r"\s{0,24}([1-9]\d{0,3}):(?=[0-9a-f]{2}:[01][0-9a-f]\.[0-7] |[0-9a-f]{2,3}:(?: [0-9a-f]{2}){16}\s*$)"
)
"""Before the address of a PCI function, or the offset of its bytes: no domain has one digit, or none of its zeros."""
NUMBERING_FEWEST = 4


def without_numbers(lines: Sequence[str]) -> list[str]:
    """Lines without their numbers, where every line of a block has one and they count by one.

    The rows of a matrix begin with 0, 1, 2 .. too, but neither its head nor what stands around it does. A block ends
    where a line without a number stands, which may be a fence or a heading, but no line of an output.
    """
    found = [*lines]
    start = 0
    while start < len(lines):
        end, last = start, -1
        numbered = 0
        while end < len(lines):
            match = _number(lines[end])
            if match is not None and last in (-1, int(match[1]) - 1) and match[1] != "0":
                last = int(match[1])
                numbered += 1
            elif lines[end].strip():
                break
            end += 1
        few = numbered < NUMBERING_FEWEST and not all(_is_message(line) for line in lines[start:end] if line.strip())
        if numbered and not few and _apart(lines, start - 1) and _apart(lines, end):
            matches = [(at, match) for at in range(start, end) if (match := _number(lines[at])) is not None]
            if len({match[0].strip() == match[1] for _, match in matches}) > 1:  # the signs are bars of a table
                matches = [(at, match) for at, _ in matches if (match := _COUNT.match(lines[at])) is not None]
            for at, match in matches:
                found[at] = lines[at][match.end() :]
        start = max(end, start) + 1
    return found


def _number(line: str) -> re.Match[str] | None:
    return _BEFORE_BDF.match(line) or _NUMBER.match(line)


def _is_message(line: str) -> bool:
    """Is it a message of the kernel behind a number? Of those two are enough."""
    match = _number(line)
    return match is not None and KERNEL.match(line, match.end()) is not None


def _apart(lines: Sequence[str], at: int) -> bool:
    """Does no line of an output stand there?"""
    if not 0 <= at < len(lines):
        return True
    text = lines[at].strip()
    return (
        not text
        or text.startswith(("```", "~~~", "---", "===", "#", "<"))
        or is_prose(text)
        or prompt(text) is not None
    )
