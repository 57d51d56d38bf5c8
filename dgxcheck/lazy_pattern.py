"""Regular expressions that are compiled when a text first holds a literal without which they cannot match.

Compiling one takes 0.1 to 2 ms, and in most runs most of them match nothing; looking for a literal takes 30 ns.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from re import Match
    from typing import Any


_SHORTEST = 3
_MOST = 6
"""What looks for shorter literals, or for more of them, takes as long as the expression itself."""
_METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "split")


class LazyPattern:
    """As ``re.Pattern``; every match holds one of ``literals``, which follow from the expression where none are given.

    Without a literal it is compiled at its first use.
    """

    compiled: re.Pattern[str]
    literals: tuple[str, ...]

    def __init__(self, expression: str, *literals: str, flags: int = 0) -> None:
        self.expression = expression
        self.flags = flags
        if literals:
            self.literals = literals

    def __getattr__(self, name: str) -> object:
        """Called for what is not there yet: ``literals`` and ``compiled``, at their first use."""
        if name == "literals":
            self.literals = needed(self.expression, self.flags) or ("",)
            return self.literals
        if name != "compiled":
            raise AttributeError(name)
        self.compiled = re.compile(self.expression, self.flags)
        if self.literals == ("",):  # from now on its own methods, without one more call for every line
            vars(self).update({name: getattr(self.compiled, name) for name in _METHODS})
        return self.compiled

    # the loop stands in each of these because a call of its own, made for every line, would double its time
    def match(self, text: str, start: int = 0) -> Match[str] | None:
        for literal in self.literals:
            if literal in text:
                return self.compiled.match(text, start)
        return None

    def fullmatch(self, text: str) -> Match[str] | None:
        for literal in self.literals:
            if literal in text:
                return self.compiled.fullmatch(text)
        return None

    def search(self, text: str) -> Match[str] | None:
        for literal in self.literals:
            if literal in text:
                return self.compiled.search(text)
        return None

    def is_possible(self, text: str) -> bool:
        """Does a text hold a literal?"""
        for literal in self.literals:  # noqa: SIM110 -- made for every line: a generator doubles its time
            if literal in text:
                return True
        return False

    def finditer(self, text: str) -> Iterator[Match[str]]:
        return self.compiled.finditer(text) if self.is_possible(text) else iter(())

    def findall(self, text: str) -> list[Any]:
        return self.compiled.findall(text) if self.is_possible(text) else []

    def sub(self, replacement: str | Callable[[Match[str]], str], text: str, count: int = 0) -> str:
        return self.compiled.sub(replacement, text, count) if self.is_possible(text) else text

    def split(self, text: str) -> list[str]:
        return self.compiled.split(text) if self.is_possible(text) else [text]


def ascii_pattern(expression: str, *literals: str) -> LazyPattern:
    """Its digits, letters and blanks are those of ASCII alone."""
    return LazyPattern(expression, *literals, flags=re.ASCII)


def caseless_pattern(expression: str, *literals: str) -> LazyPattern:
    """Capital letters and small ones are the same to it."""
    return LazyPattern(expression, *literals, flags=re.IGNORECASE)


_PART = LazyPattern(
    r"(?P<run>[^\\\[(){}|*+?.^$]+(?![*+?{]))|(?P<open>\((?:\?(?:P<\w+>|:|(?P<aside>)))?)|(?P<bar>\|)"
    r"|(?:(?P<close>\))|(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\]|\\(?:x..|u.{4}|\d+|\w)|[.^$])|(?P<char>\\.|.))"
    r"(?P<repeat>[*+?]|\{(?!\})\d*(?:,\d*)?\})?\??",
    "",
    flags=re.DOTALL,
)
_FLAGS = LazyPattern(r"\(\?[aLmsu]*[ix]", "(?")
"""Flags within the expression, after which its letters are no literals."""


def needed(expression: str, flags: int = 0) -> tuple[str, ...]:
    """Literals of which every match holds one; none where only short ones, or many, are sure."""
    unsure = flags & (re.IGNORECASE | re.VERBOSE) or _FLAGS.match(expression)
    return () if unsure else _needed(_PART.finditer(expression))[0]


def _needed(parts: Iterator[Match[str]]) -> tuple[tuple[str, ...], bool]:
    """Of what stands before the end of a group; and may the group be absent?"""
    branches: list[tuple[str, ...]] = []
    best: tuple[str, ...] = ()
    run, absent = "", False
    for part in parts:
        if part["run"]:
            run += part["run"]
            continue
        absent = (part["repeat"] or "").startswith(("*", "?", "{0", "{,"))
        inner: tuple[str, ...] = ()
        if part["open"]:
            inner, may_lack = _needed(parts)
            inner = () if may_lack or part["aside"] is not None else inner
        elif part["char"] and not absent:
            run += part["char"][-1]
            if not part["repeat"]:
                continue
        best, run = max(best, (run,), inner, key=_length), ""
        if part["bar"] or part["close"]:
            branches.append(best)
            best = ()
        if part["close"]:
            break
    else:
        branches.append(max(best, (run,), key=_length))
    literals = tuple(dict.fromkeys(literal for branch in branches for literal in branch))
    sure = len(literals) <= _MOST and all(_length(branch) >= _SHORTEST for branch in branches)
    return literals if sure else (), absent


def _length(literals: tuple[str, ...]) -> int:
    return min(map(len, literals), default=0)
