"""The kernel's lists of CPUs: ``0-19,40-59``."""

from __future__ import annotations

from collections.abc import Iterable

_MOST_DIGITS = 9


def ranges(cpulist: str) -> tuple[range, ...] | None:
    """The runs of CPU numbers in a list, in its order; () for an empty list, None for a text that is no list."""
    runs = []
    for part in cpulist.strip().split(",") if cpulist.strip() else ():
        first, dash, last = part.partition("-")
        if not _is_number(first) or (dash and not _is_number(last)):
            return None
        runs.append(range(int(first), int(last or first) + 1))
    if not all(runs):
        return None
    return tuple(runs)


def cpulist(runs: Iterable[range]) -> str:
    """Runs of CPU numbers in the kernel's form."""
    return ",".join(f"{run[0]}" if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


def _is_number(text: str) -> bool:
    """ASCII digits alone: ``int()`` takes underscores and the digits of other scripts."""
    return text.isascii() and text.isdigit() and len(text) <= _MOST_DIGITS
