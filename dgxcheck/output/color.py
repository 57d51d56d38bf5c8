"""Colour for a terminal: labels by distance, statuses by severity; the text is never parsed as markup."""

from __future__ import annotations

import io

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
    r"(?m)(?<![\w-])(FAIL|UNKNOWN)(?=[ :]|$)|^fail(?=  )": "bold red",
    r"(?m)(?<![\w-])WARN(?=[ :]|$)|^warn(?=  )": "bold yellow",
    r"(?m)(?<![\w-])PASS(?=[ :])|^pass(?=  )|(?<=[0-9] )ok(?= |$)|(?<=  )ok(?=  |$)": "green",
    r"(?m)^WORSE ": "bold red",
    r"(?m)^BETTER ": "green",
    r"(?m)(?<=[ :] )ready(?=,| |$)": "green",
    r"(?m)(?<=[ :] )slow(?=,|  |$)|^slow(?=:)": "yellow",
    r"(?m)(?<=  )no(?=  |$)|^no(?=:)|(?<=: )not ready(?=,)": "bold red",
    r"(?<!\S)([0-9.]+|hung|failed|wrong|\?)!(?!\S)": "bold red",
    r"(?<!\S)[0-9.]+\*(?!\S)": "bold yellow",
    r"(?<!\S)(9[89]|[1-9]\d\d)%(?!\S)": "black on green",
    r"(?<!\S)9[0-7]%!?(?!\S)": "green",
    r"(?<!\S)[78]\d%!?(?!\S)": "bold yellow",
    r"(?<!\S)[56]\d%!?(?!\S)": "black on yellow",
    r"(?<!\S)[1-4]?\d%!?(?!\S)": "bold white on red",
}


def colorize(text: str) -> str:
    """The text with ANSI colours on labels and statuses; lines are not wrapped."""
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, no_color=False, color_system="standard", markup=False)
    marked = Text(text, end="")
    for pattern, style in _STYLES.items():
        marked.highlight_regex(pattern, style)
    console.print(marked, soft_wrap=True, end="")
    return out.getvalue()
