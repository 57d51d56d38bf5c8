"""A JSON object among other lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from dgxcheck.facts.missing import Json

MOST_CHARACTERS = 1 << 22
_MOST_TRIES = 64
_WINDOWS = (64, 1024, 16_384, MOST_CHARACTERS)
"""Lines of a document that are tried, the next more where these break off in the middle of it."""
_BLANK = 8
"""Lines in which the first member begins."""
Document = dict[str, Json]


def documents(lines: tuple[str, ...], wanted: Callable[[Document], bool]) -> Iterator[tuple[Document, range]]:
    """The objects that begin a line and are ``wanted``, each with its lines.

    What is within a wanted one is no document of its own; within others it may be.
    """
    beyond = tries = 0
    for start, line in enumerate(lines):
        if start < beyond or not line.lstrip().startswith("{") or tries >= _MOST_TRIES or not _opens(lines, start):
            continue
        tries += 1
        found, end = document(lines, start)
        if wanted(found):
            beyond = end
            yield found, range(start, end)


def _opens(lines: tuple[str, ...], start: int) -> bool:
    """Does what stands behind the brace begin a member, or end the object? Source code has braces too."""
    behind = lines[start].lstrip()[1:].lstrip()
    behind = behind or next((text for line in lines[start + 1 : start + _BLANK] if (text := line.lstrip())), "")
    return behind[:1] in ('"', "}")


def document(lines: tuple[str, ...], start: int) -> tuple[Document, int]:
    """The object that begins in a line, and the number of the line after it; ({}, start) where there is none."""
    for count in _WINDOWS:
        window = _bounded(lines, start, count)
        text = "\n".join(window) + "\n"
        begin = len(text) - len(text.lstrip())
        try:
            found, length = json.JSONDecoder().raw_decode(text, begin)
        except json.JSONDecodeError as error:
            shown = text.rstrip()
            if len(window) < count or error.pos < len(shown) - len(shown.rpartition("\n")[2]):
                return {}, start
        except (ValueError, RecursionError):
            return {}, start
        else:
            return (found, start + text.count("\n", 0, length) + 1) if isinstance(found, dict) else ({}, start)
    return {}, start


def _bounded(lines: tuple[str, ...], start: int, count: int) -> list[str]:
    """At most ``count`` lines from ``start`` on, with at most MOST_CHARACTERS in all."""
    room, taken = MOST_CHARACTERS, []
    for line in lines[start : start + count]:
        room -= len(line)
        if room < 0:
            break
        taken.append(line)
    return taken
