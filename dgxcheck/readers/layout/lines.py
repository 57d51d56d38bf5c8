"""Single lines of a paste: characters of terminals and browsers, marks of what was left out, sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TypeVar

from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.wording import any_of

T = TypeVar("T")
_ESCAPE = LazyPattern(
    r"\x1b\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)"  # title of a window
    r"|\x1b\[[0-9;?]{0,20}[ -/]?[@-~]|\x1b[()][A-Za-z0-9]|\x1b[=>78cM]"
)
_SPELLED = LazyPattern(r"(?:\^\[|\\033|\\e|\\x1b|\\u001b|\u241b)?\[\d{1,3}(?:;\d{1,3}){0,6}m")
"""Colours and underlines whose ESC was lost on the way or spelled out: ``[4mGPU0 .. [0m``."""
_BLANKS = {ord(blank): " " for blank in "\xa0\u2002\u2003\u2007\u2009\u202f\u3000"} | {
    ord(nothing): None for nothing in "\u200b\u200c\u200d\u2060\ufeff\xad\u200e\u200f"
}
_ENTITIES = {
    "&lt;": "<", "&gt;": ">", "&amp;": "&", "&quot;": '"', "&#39;": "'", "&#x27;": "'", "&nbsp;": " ", "&#124;": "|",
}  # fmt: skip
_ENTITY = LazyPattern("|".join(_ENTITIES))
_ARROW = LazyPattern(r"(?<=\S)\s+(?:<={1,40}|<-{2,40}|<{2,40}|[\u2190\u21d0\u25c4]).{0,200}$")
"""What people write behind a row: ``<=== here``."""
_PANE = LazyPattern(
    r"(?P<left> ?[\u2502\u2503])?(?P<text>(?! {0,9}[\u2500-\u257f]).*?)(?P<right>\s{0,200}[\u2502\u2503]\s{0,9})?"
)
"""The border of a terminal's pane, at one side or around a table of signs; trees and tables of other signs go on so."""
_BREAK = LazyPattern(r"(?<=\S)\s{0,9}(?:<br ?/?>){1,3}\s{0,9}$")
_REMARK = LazyPattern(r"(?<=\S)\s{2,}# (?!dmidecode \d)\S.{0,200}$", "# ")
"""What people explain behind a value; heads of tables begin with such a sign."""
SHORT = 3
"""Characters behind a carriage return that do not overwrite the line."""
_PLAIN = LazyPattern(r"[ -%'-;=-Z\\^-~\t]*")
"""A line without any of these characters; most lines are such."""


def plain(line: str) -> str:
    """A line as the tool wrote it, without arrows that people pointed at it with."""
    if "\x1b" in line:
        line = _ESCAPE.sub("", line)
    if _PLAIN.fullmatch(line):
        return line
    if "[" in line:
        line = _SPELLED.sub("", line)
    if not line.isascii():
        line = line.translate(_BLANKS)
    if "&" in line and not line.lstrip().startswith("<"):
        line = _ENTITY.sub(lambda match: _ENTITIES[match[0]], line)
    if "\r" in line:
        before, _, last = line.rstrip("\r").rpartition("\r")
        line = last if len(last) > SHORT else before + last
    line = _BREAK.sub("", line)
    return _ARROW.sub("", line) if "<" in line or not line.isascii() else line


def without_pane(line: str) -> str:
    """A line without the border of a terminal's pane, which may stand behind other prefixes."""
    pane = None if line.isascii() else _PANE.fullmatch(line)
    is_border = pane and (not (pane["left"] and pane["right"]) or pane["text"].lstrip()[:1] in ("|", "+"))
    return pane["text"] if pane and is_border else line


def without_remark(line: str) -> str:
    """Of a line without prefixes: what a sign begins is the head of a table or a command, not a remark."""
    if "# " not in line or line.partition("#")[0].strip().isdecimal() or line.lstrip()[:1] == "#":
        return line
    return _REMARK.sub("", line)


_CUTS_WORD = (
    r"(?:\.{2,6}|\u2026{1,2}|snip(?:ped)?|cut|truncated|omitted|skipped|output (?:omitted|truncated|cut)|\u7701\u7565)"
)
_CUT = caseless_pattern(
    rf"[\[(<{{] ?{_CUTS_WORD}(?: (?:omitted|snip|cut|more))? ?[\])>}}]|\.{{3,6}}|\u2026{{1,2}}"
    rf"|[-=~*#._]{{2,20}} ?(?:snip|cut|cut here|\u2026) ?[-=~*#._]{{2,20}}|\d{{1,6}} more lines?"
)


def is_cut(line: str) -> bool:
    """Does a line only say that others were left out?"""
    return _CUT.fullmatch(line.strip()) is not None


_PROSE_WORDS = LazyPattern(r"(?<!\S)[(\"'*_`]{0,8}[^\W\d_](?:[^\W\d_]|['\u2019-]){0,30}[.,:;!?)]{0,4}(?!\S)")
_CJK = LazyPattern(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_COLUMNS = LazyPattern(r"[\t|=]|  |(?<=\S)\s+:\s+\S", "\t", "|", "=", "  ", ":")
"""What lines of tools have and sentences do not."""
_TECHNICAL = caseless_pattern(any_of("layout/lines", "technical"))
_COMMENT = LazyPattern(r"#{1,6} (?=[A-Za-z])|\*\*(?=\S)|- (?=[A-Z])")
_URL = LazyPattern(r"https?://\S{4}")
PROSE_FEWEST = 4
"""Words of a sentence."""


def is_prose(line: str) -> bool:
    """Is a line a comment or a heading, or a sentence that speaks of no device or fault, in any script?"""
    text = line.strip()
    if len(text) > 2000 or line[:1] == "\t" or line[:2] == "  " or _COLUMNS.search(text):
        return False
    comment = _COMMENT.match(text)
    words = text.lstrip("#*->! ").split()
    prose_words = len(_PROSE_WORDS.findall(text.lstrip("#*->! ")))
    sentence = prose_words >= PROSE_FEWEST and 10 * prose_words >= (5 if comment else 6) * len(words)
    if (comment and sentence) or _URL.search(text) or (text.endswith(":") and ":" not in text[:-1]):
        return True
    is_sentence = sentence or (not text.isascii() and len(_CJK.findall(text)) >= PROSE_FEWEST)
    return is_sentence and not _TECHNICAL.search(text)


def runs(lines: Sequence[T], is_within: Callable[[T], object]) -> Iterator[tuple[int, int]]:
    """Where lines that are so begin and end, those beside each other together."""
    for within, group in groupby(range(len(lines)), key=lambda at: bool(is_within(lines[at]))):
        if within:
            first, *others = group
            yield first, (others or [first])[-1] + 1


_EDGES = "|+"
WRAPPING_FEWEST = 40
"""Characters of the first half of a row; frames that tools draw have 60 and more."""
WIDEST = 240


def unwrapped(lines: Sequence[str]) -> tuple[list[str], dict[int, int]]:
    """Lines with the rests of framed rows joined to them, and which line each rest continues."""
    found = [*lines]
    joined: dict[int, int] = {}
    for at in range(len(lines) - 1):
        first, rest = lines[at].rstrip("\r\n"), lines[at + 1]
        head, tail = first.strip(), rest.strip()
        deeper = len(rest) - len(rest.lstrip()) > len(first) - len(first.lstrip())
        begins = tail[:1] not in ("", *_EDGES) or (tail[:1] == "|" and deeper)
        broken = len(first) >= WRAPPING_FEWEST and head[:1] in ("|", "+") and begins and tail[-1] in _EDGES
        if broken and at not in joined and len(first) + len(rest) <= WIDEST:
            found[at], found[at + 1] = first + rest, ""
            joined[at + 1] = at
    return found, joined
