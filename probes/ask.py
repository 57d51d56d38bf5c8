"""Asks a Source for one file and turns its text into a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source

T = TypeVar("T")


def ask(source: Source, path: str, parse: Callable[[str, str], T | Missing]) -> T | Missing:
    """What ``parse(text, path)`` makes of the file, or why there is no text."""
    answer = source.text(path)
    return answer if isinstance(answer, Missing) else parse(answer, path)
