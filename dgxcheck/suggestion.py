"""Names like the one that the user mistyped."""

from __future__ import annotations

from collections.abc import Collection

_LONGEST = 80


def did_you_mean(word: str, names: Collection[str], otherwise: str, most: int = 1, likeness: float = 0.6) -> str:
    """``did you mean NAME?`` with up to ``most`` of the names at least so like (0 to 1); else ``otherwise``."""
    from difflib import get_close_matches

    near = get_close_matches(word[:_LONGEST], names, n=most, cutoff=likeness)
    return f"did you mean {' or '.join(near)}?" if near else otherwise
