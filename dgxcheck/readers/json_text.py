"""A JSON object among other lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from dgxcheck.facts.missing import Json

MOST_CHARACTERS = 1 << 22
_MOST_TRIES = 64
Document = dict[str, Json]


def documents(lines: tuple[str, ...], wanted: Callable[[Document], bool]) -> Iterator[tuple[Document, range]]:
    """The objects that begin a line and are ``wanted``, each with its lines.

    What is within a wanted one is no document of its own; within others it may be.
    """
    beyond = tries = 0
    for start, line in enumerate(lines):
        if start < beyond or not line.lstrip().startswith("{") or tries >= _MOST_TRIES:
            continue
        tries += 1
        found, end = document(lines, start)
        if wanted(found):
            beyond = end
            yield found, range(start, end)


def document(lines: tuple[str, ...], start: int) -> tuple[Document, int]:
    """The object that begins in a line, and the number of the line after it; ({}, start) where there is none."""
    text = ""
    for line in lines[start:]:
        if len(text) + len(line) > MOST_CHARACTERS:
            break
        text += line + "\n"
    begin = len(text) - len(text.lstrip())
    try:
        found, length = json.JSONDecoder().raw_decode(text, begin)
    except (ValueError, RecursionError):
        return {}, start
    return (found, start + text.count("\n", 0, length) + 1) if isinstance(found, dict) else ({}, start)
