"""Marks of Markdown, HTML and mail around an output: quotes, fences, tables."""

from __future__ import annotations

import re
from collections.abc import Sequence

_QUOTE = re.compile(r"(?: {0,3}>{1,3} ?){1,8}")
_FENCE = re.compile(
    r"(?:\s*(?:`{3,8}|~{3,8})[\w+.-]{0,24}|\[/?(?:code|quote|pre)\]"
    r"|(?:</?(?:pre|code|details|summary|blockquote|p|br|div)(?: [^<>]{0,80})?/?>\s{0,8}){1,6}"
    r"|<summary>[^<>]{0,200}</summary>|=== \"[^\"]{1,80}\")\s*",
    re.IGNORECASE,
)
"""A line that only begins or ends a block."""
_TAGS = re.compile(r"^\s*(?:<(?:pre|code|p)>){1,3}|(?:</(?:pre|code|p)>|<br ?/?>){1,3}\s*$", re.IGNORECASE)
_TICKS = re.compile(r"^(\s*)`{1,3}(?=\S)|(?<=\S)`{1,3}\s*$")
_RULE = frozenset("|-: ")


def is_fence(line: str) -> bool:
    """Does a line only begin or end a block of code?"""
    return len(line) < 400 and _FENCE.fullmatch(line) is not None


def unquoted(line: str) -> str:
    """A line without the marks of a mail that quotes it."""
    match = _QUOTE.match(line) if ">" in line[:4] else None
    return line[match.end() :] if match else line


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


def _is_rule(line: str) -> bool:
    """``|---|:---:|``; the rules of frames that tools draw have a ``+``."""
    return "--" in line and "|" in line and _RULE.issuperset(line.strip())


def _is_listed(line: str) -> bool:
    """A line with the ``| |`` that lists of some web pages leave behind it, and no row of a frame."""
    return line.lstrip()[:1] not in "|+" and line.rstrip().removesuffix("|").rstrip().endswith("|")


def _cells(line: str) -> str:
    text = line.strip().replace("\\|", " ")
    inner = text[1:] if text.startswith("|") else text
    inner = inner.removesuffix("|")
    return "\t".join(cell.strip().strip("*_`") for cell in inner.split("|"))
