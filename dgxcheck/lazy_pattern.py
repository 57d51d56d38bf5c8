"""Regular expressions that are compiled when a text first holds a literal without which they cannot match.

Compiling one takes 0.1 to 2 ms, and in most runs most of them match nothing; looking for a literal takes 30 ns.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from re import Match


class LazyPattern:
    """As ``re.Pattern``; every match holds one of ``literals``, which nothing but the expression's author guarantees.

    Without a literal it is compiled at its first use.
    """

    __slots__ = ("compiled", "expression", "flags", "literals")
    compiled: re.Pattern[str]

    def __init__(self, expression: str, *literals: str, flags: int = 0) -> None:
        self.expression = expression
        self.literals = literals or ("",)
        self.flags = flags

    def __getattr__(self, name: str) -> re.Pattern[str]:
        """Called for a slot that is still empty: ``compiled``, at its first use."""
        if name != "compiled":
            raise AttributeError(name)
        self.compiled = re.compile(self.expression, self.flags)
        return self.compiled

    # the loop stands in each of these because a call of its own, made for every line, would double its time
    def match(self, text: str) -> Match[str] | None:
        for literal in self.literals:
            if literal in text:
                return self.compiled.match(text)
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

    def finditer(self, text: str) -> Iterator[Match[str]]:
        return self.compiled.finditer(text) if any(literal in text for literal in self.literals) else iter(())

    def sub(self, replacement: str | Callable[[Match[str]], str], text: str) -> str:
        return self.compiled.sub(replacement, text) if any(literal in text for literal in self.literals) else text
