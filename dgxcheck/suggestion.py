"""Names like the one that the user mistyped."""

from __future__ import annotations

import re
from collections.abc import Collection

_LONGEST = 80


def did_you_mean(word: str, names: Collection[str], otherwise: str, most: int = 1, likeness: float = 0.6) -> str:
    """``did you mean NAME?`` with up to ``most`` names of which the word is a part, else that begin with a word
    without hyphens but for theirs (``dgx1``), else that are at least so like it (0 to 1); else ``otherwise``.
    """
    from difflib import get_close_matches

    part = word[:_LONGEST]
    near = [name for name in names if part and part in re.split("[.-]", name)][:most]
    if not near and len(part) > 2 and part.isalnum():
        near = sorted((name for name in names if _plain(name).startswith(part.lower())), key=len)[:most]
    near = near or get_close_matches(part, names, n=most, cutoff=likeness)
    return f"did you mean {' or '.join(near)}?" if near else otherwise


def _plain(name: str) -> str:
    return re.sub("[^a-z0-9]", "", name.lower())
