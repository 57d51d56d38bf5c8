"""A JSON object among other lines."""

from __future__ import annotations

import json

from dgxcheck.facts.missing import Json

MOST_CHARACTERS = 1 << 22


def document(lines: tuple[str, ...], start: int) -> tuple[dict[str, Json], int]:
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
