"""Marks of Markdown, HTML and mail around an output: quotes, fences, tables."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.layout.lines import is_prose, runs
from dgxcheck.readers.wording import any_of

_QUOTE = LazyPattern(r"(?: {0,12}>{1,3} ?){1,8}")
_ESCAPES = ("\\|", "\\+", "\\[")
"""How rows of frames and of the kernel log begin in which every sign that Markdown knows has a backslash; no line of
``lspci -t`` does."""
_IN_WORD = LazyPattern(r"\w\\_\w", "\\_")
"""Of ``mlx5\\_core``: the whole line has them."""
_ESCAPED = LazyPattern(r"\\(?=[|+_*#\[\]<>~=]|-(?![\[\d]))")
_FENCE = caseless_pattern(rf"(?:{any_of('layout/lines', 'fence')})\s*")
"""A line that only begins or ends a block."""
_TAGS = caseless_pattern(r"^\s*(?:<(?:pre|code|p)>){1,3}|(?:</(?:pre|code|p)>){1,3}\s*$")
_TICKS = LazyPattern(r"^(\s*)`{1,3}(?=\S)|(?<=\S)`{1,3}\s*$")
FEWEST = 3
"""Lines of a table of one column."""
CODE = 4
"""Blanks that begin a line of code."""
_MARKED = LazyPattern(r"[\w.]{0,40}[\d:'\[|+#=]")
"""How a paragraph begins that is no part of a dump, in which indentation has a meaning: ``07:00.0``, ``|``, ``[``."""
_TREE = LazyPattern(r"[ |]{0,400}(?:[-+\\|]{1,3}\[[0-9a-f]{2}|[+\\]-[01][0-9a-f]\.[0-7])")
"""A line of ``lspci -t``, which has bars of its own."""
_RULE = frozenset("|-: ")


def is_fence(line: str) -> bool:
    """Does a line only begin or end a block of code?"""
    return len(line) < 400 and _FENCE.fullmatch(line) is not None


def unquoted(line: str) -> str:
    """A line without the marks of a mail that quotes it, and without backslashes before signs of Markdown."""
    match = _QUOTE.match(line) if line.lstrip()[:1] == ">" else None
    line = line[match.end() :] if match else line
    return _ESCAPED.sub("", line) if line.lstrip()[:2] in _ESCAPES or _IN_WORD.search(line) else line


def unenclosed(line: str) -> str:
    """A line without what makes it code within its own line."""
    if "`" in line:
        line = _TICKS.sub(r"\1", line)
    return _TAGS.sub("", line) if "</" in line or line.lstrip()[:2].lower() in ("<p", "<c") else line


def without_tables(lines: Sequence[str]) -> tuple[list[str], set[int]]:
    """The rows of tables in Markdown as lines with tabs, and the numbers of the rules below their heads."""
    found = [*lines]
    rules: set[int] = set()
    for at, line in enumerate(lines):
        if at and _is_rule(line) and "|" in lines[at - 1]:
            rules.add(at)
            found[at] = ""
            found[at - 1] = _cells(lines[at - 1])
            below = at + 1
            while below < len(lines) and lines[below].count("|") >= 2 and not _is_rule(lines[below]):
                found[below] = _cells(lines[below])
                below += 1
        elif found[at] is line and _is_listed(line):
            found[at] = line.rstrip(" |")
    return found, rules


def without_column(lines: Sequence[str]) -> list[str]:
    """Lines without the bars around each, where a table of one column was made of them; no tool draws such a table."""
    found = [*lines]
    for start, end in runs([line.strip() for line in lines], lambda text: len(text) > 1 and text[0] == text[-1] == "|"):
        around = (*lines[max(start - 1, 0) : start], *lines[end : end + 1])
        if end - start >= FEWEST and not any(line.strip().startswith("+") for line in around):
            found[start:end] = _column([line.strip()[1:-1] for line in lines[start:end]]) or lines[start:end]
    return found


def _column(cells: list[str]) -> list[str]:
    """The texts of the only column, without head and rule; none where there are several, or a tool drew the table."""
    if _is_rule(f"|{cells[1]}|"):
        if "|" in cells[1]:
            return []
        cells = ["", "", *cells[2:]]
    texts = [cell.removeprefix(" ") for cell in cells]
    filled = [text.strip() for text in texts if text.strip()]
    frames = sum(text[0] in "|+" for text in filled)
    plain = sum(("|" not in text and "---" not in text) or _TREE.match(text) is not None for text in filled)
    nested = any(text[0] == "+" for text in filled) and 10 * frames >= 7 * len(filled)
    return texts if nested or 10 * plain >= 9 * len(filled) else []


def dedented(lines: Sequence[str]) -> list[str]:
    """Lines without the indentation that makes a paragraph code in Markdown, where all of its lines have it."""
    found = [*lines]
    for start, end in runs(lines, str.strip):
        first, last = _without_words(lines, start, end)
        margin = min(map(_margin, lines[first:last]), default=0)
        if margin >= CODE and _MARKED.match(lines[first], margin):
            found[first:last] = [line[margin:] for line in lines[first:last]]
    return found


def _without_words(lines: Sequence[str], first: int, last: int) -> tuple[int, int]:
    """A paragraph without the sentences that begin and end it at the margin."""
    while first < last and _margin(lines[first]) < CODE and is_prose(lines[first]):
        first += 1
    while first < last and _margin(lines[last - 1]) < CODE and is_prose(lines[last - 1]):
        last -= 1
    return first, last


def _margin(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_rule(line: str) -> bool:
    """``|---|:-:|``; the rules of frames that tools draw have a ``+``."""
    return ("--" in line or ":-" in line) and "|" in line and _RULE.issuperset(line.strip())


def _is_listed(line: str) -> bool:
    """A line with the ``| |`` that lists of some web pages leave behind it, and no row of a frame."""
    return line.lstrip()[:1] not in "|+" and line.rstrip().removesuffix("|").rstrip().endswith("|")


def _cells(line: str) -> str:
    text = line.strip().replace("\\|", " ")
    return "\t".join(cell.strip().strip("*_`") for cell in text.removeprefix("|").removesuffix("|").split("|"))
