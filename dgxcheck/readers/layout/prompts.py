"""Shell prompts with their commands, and the headings that name a host."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.record import Record
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.wording import any_of

_NAME = any_of("layout/lines", "{NAME}")
_TOOL = (
    r"(?:(?:sudo|time|command|env|exec) {1,4}(?:-\S{1,20} )?)?(?:[A-Z_]{2,40}=\S{0,80} {1,4}){0,8}(?:[\w.~/-]{0,120}/)?"
    rf"(?:{any_of('layout/lines', 'tool')})"
)
_COMMAND = LazyPattern(rf"{_TOOL}(?: [- |>&;/.\w@:=,'\"*%+~\[\]{{}}$()\\#?!\t]{{0,900}})?")
_PROSE = LazyPattern(r"(?: [A-Za-z]{2,20}){4}")
"""Four bare words in a row: a sentence about a command, not a command."""
_USER = LazyPattern(
    rf"(?:\([\w./ -]{{1,60}}\) ?){{0,2}}(?:\[[\w.-]{{1,40}}@(?P<rh>{_NAME})[^\]]{{0,120}}\] ?[$#>]"
    rf"|[\w.-]{{1,40}}@(?P<debian>{_NAME}):[^$#]{{0,160}}[$#]"
    rf"|[\w.-]{{1,40}}@(?P<short>{_NAME})[ %>][^$#%>]{{0,80}}[$#%>]"
    rf"|(?P<bare>{_NAME})[:>][~/][^$#]{{0,100}}[$#])(?:\s{{1,4}}(?P<command>\S.{{0,900}})|\s{{0,4}})"
)
_DOLLAR = LazyPattern(
    r"(?:\([\w.-]{1,40}\) ?)?[$%\u276f\u279c\u27a4] {1,4}(?P<command>[A-Za-z./~_(\[{'\"].{0,900})|[$%] {0,4}"
)
_ROOT = LazyPattern(
    r"(?!# dmidecode \d)(?:# \$|#|>|\+|PS [A-Z]:[^>]{0,120}>|[A-Z]:\\[^>]{0,120}>|In ?\[\d{0,4}\]:|!|%) {0,4}!?"
    rf"(?P<command>{_TOOL}\b.{{0,900}})"
)
_BARS = caseless_pattern(
    rf"(?:={{3,40}}|-{{3,40}}|\*{{3,40}}|\#{{2,40}}|>{{3,40}}|\+{{3,40}}) {{0,4}}"
    r"(?:(?:hostname|host|node)(?: {0,2}[:=] {0,2}| {1,2}))?"
    rf"(?P<host>{_NAME})(?: \| [^=]{{0,80}})? {{0,4}}:? {{0,4}}"
    rf"(?:={{3,80}}|-{{3,80}}|\*{{3,80}}|\#{{2,80}}|<{{3,80}}|\+{{3,80}})"
)
_NAMED = caseless_pattern(
    r"(?:#{1,4} {0,2}|\*\*)?(?:on )?(?:host|hostname|node|server|machine)(?: ?name)? {0,2}[:=] {0,2}`?"
    rf"(?P<host>{_NAME})`?(?:\*\*)?:?"
)
_ANSIBLE = LazyPattern(rf"(?P<host>{_NAME}) \| (?:CHANGED|SUCCESS|FAILED)(?: \| rc=\d{{1,3}} >>)?")
_RULE = LazyPattern(r"-{5,120}")
_DRAWN = LazyPattern(r"([#=*~_-])\1{7,200}|\[exit \d{1,3}\]")
"""A line drawn between outputs, or what a script says of the one above."""
_ALONE = LazyPattern(r"[A-Za-z0-9][\w.,\[\]-]{0,120}")


class Prompt(Record, kw_only=False):
    """A line that calls for an output, or that names the host of those below it."""

    host: str
    """Empty where it names none."""
    command: str
    """The command line without its prompt; empty for a heading."""


def prompt(line: str) -> Prompt | None:
    """What a prompt, a command line or a heading of a host says; None for every other line."""
    text = line.strip()
    if not text or len(text) > 1000:
        return None
    if match := _USER.fullmatch(text):
        return Prompt(match["rh"] or match["debian"] or match["short"] or match["bare"] or "", match["command"] or "")
    if text[0] in "$%\u276f\u279c\u27a4(" and (match := _DOLLAR.fullmatch(text)):
        return Prompt("", match["command"] or "")
    if match := _ROOT.fullmatch(text):
        return Prompt("", match["command"])
    if _COMMAND.fullmatch(text) and not _PROSE.search(text):
        return Prompt("", text)
    for heading in (_BARS, _NAMED, _ANSIBLE):
        match = heading.fullmatch(text)
        if match and _is_host(match["host"]):
            return Prompt(match["host"], "")
    return None


def is_drawn(line: str) -> bool:
    """Does a line only separate outputs?"""
    return _DRAWN.fullmatch(line.strip()) is not None


def _is_host(name: str) -> bool:
    """Headings hold other words too: a host has a digit, a dash or a dot in it."""
    return any(letter.isdigit() or letter in "-." for letter in name) and not name.replace(".", "").isdigit()


def headings(lines: Sequence[str]) -> dict[int, Prompt]:
    """By line: the heads of dshbak and ``clush -b``, a name between two rules."""
    found: dict[int, Prompt] = {}
    for at in range(1, len(lines) - 1):
        name = lines[at].strip()
        if _RULE.fullmatch(lines[at - 1].strip()) and _RULE.fullmatch(lines[at + 1].strip()) and _ALONE.fullmatch(name):
            found |= {at - 1: Prompt("", ""), at: Prompt(name.partition(" ")[0], ""), at + 1: Prompt("", "")}
    return found
