"""Colour for a terminal: labels by distance, statuses by severity; the text is never parsed as markup."""

from __future__ import annotations

import io

from rich.console import Console
from rich.text import Text

from dgxcheck.package_files import table

_STYLES = [*table("output/styles.tsv")]


def colorize(text: str) -> str:
    """The text with ANSI colours on labels and statuses; lines are not wrapped."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, no_color=False, color_system="standard", markup=False)
    marked = Text(text, end="")
    for row in _STYLES:
        marked.highlight_regex(row["pattern"], row["style"])
    console.print(marked, soft_wrap=True, end="")
    return out.getvalue()
