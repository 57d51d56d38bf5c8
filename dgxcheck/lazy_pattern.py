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


_METHODS = ("match", "fullmatch", "search", "finditer", "findall", "sub", "split")


class LazyPattern:
    """As ``re.Pattern``; every match holds one of ``literals``; tests/test_patterns.py derives it.

    Without a literal it is compiled at its first use.
    """

    compiled: re.Pattern[str]

    def __init__(self, expression: str, *literals: str, flags: int = 0) -> None:
        self.expression = expression
        self.literals = literals or ("",)
        self.flags = flags

    def __getattr__(self, name: str) -> re.Pattern[str]:
        """Called for what is not there yet: ``compiled``, at its first use."""
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
