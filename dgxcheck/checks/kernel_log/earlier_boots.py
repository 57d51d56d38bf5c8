"""Events of earlier boots in a log: a bug report is often written after the reboot that followed the fault."""

from __future__ import annotations

import re
from collections.abc import Collection

from dgxcheck.facts.kernel_log import EarlierXid, KernelLog

LEAST_FREE = 3
"""Fewer boots without the fault do not show that an intermittent one is gone."""
_BEFORE = re.compile(r"-[1-9]\d{0,3}", re.ASCII)


def earlier_xids(log: KernelLog, bdf: str = "") -> list[EarlierXid]:
    """Xids of earlier boots in the log itself, of one device or of all. Those of a state file are left out: they may be
    of a board that was replaced."""
    return [each for each in log.earlier if not each.uuid and not each.date and each.bdf == (bdf or each.bdf)]


def boots_since(boots: Collection[str]) -> int:
    """Number of boots since the last of ``boots``, if it exceeds the span of boots with the fault; else 0.

    A fault that stayed away for longer than it lasted was probably repaired: board, power or driver were changed.
    """
    numbers = [-int(boot) for boot in boots if _BEFORE.fullmatch(boot)]
    if not numbers or len(numbers) < len(boots):
        return 0
    since, span = min(numbers), max(numbers) - min(numbers) + 1
    return since if since > max(span, LEAST_FREE) else 0
