"""Identity texts of ``/sys/class/infiniband`` (drivers/infiniband/core/sysfs.c)."""

from __future__ import annotations

from dgxcheck.facts.missing import Gap, Missing
from probes.parse_scalar import garbled, is_decimal

_HEX = frozenset("0123456789abcdefABCDEF")


def guid(text: str, where: str) -> str | Missing:
    """``506b:4b03:003c:eee8``; some virtual functions have zeros for one."""
    body = text.strip()
    groups = body.split(":")
    if len(groups) != 4 or not all(len(group) == 4 and _HEX.issuperset(group) for group in groups):
        return garbled(text, where)
    return body if body.strip("0:") else Missing(Gap.UNSUPPORTED, where, "all zeros")


def node_type(text: str, where: str) -> str | Missing:
    """The name in ``1: CA``."""
    number, _, name = text.strip().partition(": ")
    return name if is_decimal(number) and name else garbled(text, where)
