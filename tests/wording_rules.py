"""Simple rules that every sentence for a user has to keep; what they forbid and why stands in CONTRIBUTING.md."""

from __future__ import annotations

import re
from functools import cache

LONGEST = 280
"""Characters of a message: two lines of a terminal of 140 columns."""
TOO_LONG = f"longer than {LONGEST} characters"
_NAMES = (
    "Command register|Compute|Ethernet|Fabric Manager|Fatal|InfiniBand|Linux|Mellanox|Memory|Persistence|Slurm|Tesla"
    "|Xid"
)
_NO_PLURALS = "access|bus|class|loss|process|status|verbs|always|was|has|is|ms|us|ns"
_RULES = {
    "a blank too many": re.compile(r"\s\s|^\s|\s$|[\t\n\r]|\s[,.;:](?:\s|$)"),
    "a doubled mark": re.compile(r"[,;:]\s*[,;:](?!/)|\(\s*\)"),
    "plural after 1": re.compile(rf"(?<![\w.:/-])1 (?!(?:{_NO_PLURALS})\b)[A-Za-z]*[a-rt-z]s\b"),
    "plural of one": re.compile(r"\bof 1 [a-z]+s\b|\b(?:CPUs|GPUs|ports|disks|links) \d+ (?:are|is)\b"),
    "capital at the start": re.compile(rf"^(?!(?:{_NAMES})\b)[A-Z][a-z]+ "),
    "full stop at the end": re.compile(r"(?<!\.\.)\.$"),
    "degrees without the sign": re.compile(r"(?<![\dC])\d{1,3} ?C\b(?!:)"),
    "a unit without a blank": re.compile(r"(?<![\w.-])\d+(?:\.\d+)?(?:%|°C|GB/s|Gbit/s|[KMG]iB|MHz)"),
    "bytes and bits in one message": re.compile(r"(?s)^(?=.*\bGB/s)(?=.*\bGbit/s)"),
    "something unformatted": re.compile(
        r"\bNone\b|\bMissing\(|\bnan\b|Gap\.|Status\.|<[a-z]+ object|(?<!')\{|\{(?!\")|(?<!\")\}|\}(?!')"
    ),
    "a word of our own": re.compile(
        r"\b(?:anew|whence|so long|for want of|in vain|(?:is|are) gone|tells?|told|cured?|mended|equals"
        r"|neighbou?rs?|mildest|wanted clocks)\b",
        re.IGNORECASE,
    ),
}
"""Each is what no message may match."""


@cache
def broken_rules(message: str) -> list[str]:
    """The rules that a message breaks, by name."""
    names = [name for name, pattern in _RULES.items() if pattern.search(message)]
    if message.count("(") != message.count(")"):
        names.append("parentheses without their other half")
    return [*names, TOO_LONG] if len(message) > LONGEST else names
