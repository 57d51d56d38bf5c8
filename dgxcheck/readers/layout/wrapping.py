"""Lines of a table with a frame that a narrow terminal or a mail program broke in two."""

from __future__ import annotations

from collections.abc import Sequence

_EDGES = "|+"
FEWEST = 40
"""Characters of the first half of a row; frames that tools draw have 60 and more."""
WIDEST = 240


def unwrapped(lines: Sequence[str]) -> tuple[list[str], dict[int, int]]:
    """Lines with the rests of framed rows joined to them, and which line each rest continues."""
    found = [*lines]
    joined: dict[int, int] = {}
    for at in range(len(lines) - 1):
        first, rest = lines[at].rstrip("\r\n"), lines[at + 1]
        head, tail = first.strip(), rest.strip()
        deeper = len(rest) - len(rest.lstrip()) > len(first) - len(first.lstrip())
        begins = tail[:1] not in ("", *_EDGES) or (tail[:1] == "|" and deeper)
        broken = len(first) >= FEWEST and head[:1] in ("|", "+") and begins and tail[-1] in _EDGES
        if broken and at not in joined and len(first) + len(rest) <= WIDEST:
            found[at], found[at + 1] = first + rest, ""
            joined[at + 1] = at
    return found, joined
