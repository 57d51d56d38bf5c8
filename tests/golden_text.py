"""Compare a whole output with its golden file; ``make golden`` accepts what is printed now.

The totals at the foot of ``health`` are no part of it: they change with every check that is added, and follow from the
findings (``test_health_totals.py``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from difflib import unified_diff
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"
UPDATE = "DGXCHECK_UPDATE_GOLDEN"
TOTALS = re.compile(r"^(?:\d+ of \d+ checks? ran|(System Results|Did not run): ).*", re.MULTILINE)
UNNAMED = re.compile(r"(?<= and )\d+(?=\s+more)")
NOTE = re.compile(r"^Note: checked in \w+ only: .*(?:\n  .*)*", re.MULTILINE)
"""A note of ``diff`` that names the first of many checks."""
COUNT = re.compile(r"\b\d+\b")
REASON = re.compile(r"\b\d+ ([^,;.]+)")


def without_totals(text: str) -> str:
    """``#`` in place of each count of checks; of skips, which are listed by their number, the reasons by name."""
    return NOTE.sub(lambda note: UNNAMED.sub("#", note[0]), TOTALS.sub(_without_counts, text))


def _without_counts(line: re.Match[str]) -> str:
    if line[1] == "Did not run":
        return f"Did not run: {', '.join(sorted(REASON.findall(line[0])))}"
    return COUNT.sub("#", line[0])


def agrees(name: str, text: str) -> None:
    """``text`` is what ``golden/<name>.txt`` holds but for totals; one diff shows every consequence of a change."""
    path, text = FOLDER / f"{name}.txt", without_totals(text)
    if os.environ.get(UPDATE):
        path.write_text(text, encoding="utf-8")
    assert path.is_file(), f"{path.name} is missing: run 'make golden' and look at what it adds"
    assert text == path.read_text(encoding="utf-8")


def holds(name: str, rows: Iterable[str]) -> None:
    """``rows`` are the lines of ``golden/<name>.txt``; where they are not, the message has those that differ."""
    path, now = FOLDER / f"{name}.txt", [*rows]
    if os.environ.get(UPDATE):
        path.write_text("\n".join([*now, ""]), encoding="utf-8")
    difference = changes(path.read_text(encoding="utf-8").split("\n")[:-1], now)
    assert not difference, difference


def changes(before: Sequence[str], now: Sequence[str]) -> str:
    return "\n".join(unified_diff(before, now, "golden", "now", lineterm="", n=1))
