"""Names like the one that the user mistyped."""

from __future__ import annotations

import re
from collections.abc import Collection

_LONGEST = 80


def did_you_mean(word: str, names: Collection[str], otherwise: str, most: int = 1, likeness: float = 0.6) -> str:
    """``did you mean NAME?`` with up to ``most`` names of which the word is a part, else that are at least so like it
    (0 to 1); else ``otherwise``.
    """
    from difflib import get_close_matches

    part = word[:_LONGEST]
    near = [name for name in names if part and part in re.split("[.-]", name)][:most]
    near = near or get_close_matches(part, names, n=most, cutoff=likeness)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
