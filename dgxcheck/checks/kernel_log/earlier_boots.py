"""What a log says of the boots before the one that is running: a report is written because of what happened in them."""

from __future__ import annotations

import re
from collections.abc import Collection

from dgxcheck.facts.kernel_log import EarlierXid, KernelLog

LEAST_FREE = 3
"""Fewer boots without a fault say nothing of one that comes and goes."""
_BEFORE = re.compile(r"-[1-9]\d{0,3}", re.ASCII)


def held(log: KernelLog, bdf: str = "") -> list[EarlierXid]:
    """Those that the log itself holds, of one device or of all; in a state file may be those of a replaced board."""
    return [each for each in log.earlier if not each.uuid and not each.date and each.bdf == (bdf or each.bdf)]


def free_since(boots: Collection[str]) -> int:
    """Boots since the last of these, this one included, if they are more than those among which it occurred; else 0.

    So long without a fault is no accident: the board, its power or its driver was changed in between.
    """
    numbers = [-int(boot) for boot in boots if _BEFORE.fullmatch(boot)]
    if not numbers or len(numbers) < len(boots):
        return 0
    since, span = min(numbers), max(numbers) - min(numbers) + 1
    return since if since > max(span, LEAST_FREE) else 0
