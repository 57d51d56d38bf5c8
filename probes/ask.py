"""Asks a Source for one file and turns its text into a value."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Source
from probes.parse_scalar import is_decimal

T = TypeVar("T")


def ask(source: Source, path: str, parse: Callable[[str, str], T | Missing]) -> T | Missing:
    """What ``parse(text, path)`` makes of the file, or why there is no text."""
    answer = source.text(path)
    return answer if isinstance(answer, Missing) else parse(answer, path)


def numbered(source: Source, folder: str, prefix: str) -> tuple[int, ...] | Missing:
    """The numbers of ``node0``, ``node1`` .. in a directory, ascending; other names beside them are left out."""
    names = source.names(folder)
    if isinstance(names, Missing):
        return names
    numbers = (name[len(prefix) :] for name in names if name.startswith(prefix))
    return tuple(sorted(int(number) for number in numbers if is_decimal(number)))
