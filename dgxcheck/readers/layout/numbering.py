"""Numbers of lines that an editor, ``cat -n`` or ``grep -n`` put before each line."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.readers.layout.prefixes import KERNEL
from dgxcheck.readers.layout.prompts import prompt
from dgxcheck.readers.layout.prose import is_prose

_NUMBER = re.compile(r"\s{0,24}(\d{1,6})(?: {0,2}[:|.)-](?![0-9a-f]{2}(?::|\.[0-7](?:\s|$))) ?|\t| {1,4}|$)")
_BEFORE_BDF = re.compile(
    r"\s{0,24}([1-9]\d{0,3}):(?=[0-9a-f]{2}:[01][0-9a-f]\.[0-7] |[0-9a-f]{2,3}:(?: [0-9a-f]{2}){16}\s*$)", re.ASCII
)
"""Before the address of a PCI function, or the offset of its bytes: no domain has one digit, or none of its zeros."""
FEWEST = 4


def without_numbers(lines: Sequence[str]) -> list[str]:
    """Lines without their numbers, where every line of a block has one and they count by one.

    The rows of a matrix begin with 0, 1, 2 .. too, but neither its head nor what stands around it does. A block ends
    where a line without a number stands, which may be a fence or a heading, but no line of an output.
    """
    found = [*lines]
    start = 0
    while start < len(lines):
        end, last = start, -1
        numbered = 0
        while end < len(lines):
            match = _number(lines[end])
            if match is not None and last in (-1, int(match[1]) - 1) and match[1] != "0":
                last = int(match[1])
                numbered += 1
            elif lines[end].strip():
                break
            end += 1
        few = numbered < FEWEST and not all(_is_message(line) for line in lines[start:end] if line.strip())
        if numbered and not few and _apart(lines, start - 1) and _apart(lines, end):
            for at in range(start, end):
                match = _number(lines[at])
                found[at] = lines[at][match.end() :] if match else lines[at]
        start = max(end, start) + 1
    return found


def _number(line: str) -> re.Match[str] | None:
    return _BEFORE_BDF.match(line) or _NUMBER.match(line)


def _is_message(line: str) -> bool:
    """Is it a message of the kernel behind a number? Of those two are enough."""
    match = _number(line)
    return match is not None and KERNEL.match(line, match.end()) is not None


def _apart(lines: Sequence[str], at: int) -> bool:
    """Does no line of an output stand there?"""
    if not 0 <= at < len(lines):
        return True
    text = lines[at].strip()
    return (
        not text
        or text.startswith(("```", "~~~", "---", "===", "#", "<"))
        or is_prose(lines[at])
        or prompt(text) is not None
    )
