"""Colour for a terminal: labels by how near they are; the text itself is never parsed as markup."""

from __future__ import annotations

import sys

from rich.console import Console
from rich.text import Text

_STYLES = {
    r"(?<![\w-])NV[0-9#]+(?![\w-])": "bold green",
    r"(?<![\w-])PIX(?![\w-])": "green",
    r"(?<![\w-])PXB(?![\w-])": "cyan",
    r"(?<![\w-])(PHB|NODE)(?![\w-])": "yellow",
    r"(?<![\w-])(SOC|SYS)(?![\w-])": "magenta",
    r"(?<!\S)(\?|X)(?!\S)": "dim",
    r"\b(narrow|differs|unknown)\b": "bold red",
}


def paint(text: str, force: bool) -> None:
    """Write text to stdout with its labels coloured, no line wrapped or cut."""
    console = Console(file=sys.stdout, force_terminal=True if force else None, highlight=False, markup=False)
    painted = Text(text, end="")
    for pattern, style in _STYLES.items():
        painted.highlight_regex(pattern, style)
    console.print(painted, soft_wrap=True, end="")
