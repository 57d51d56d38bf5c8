"""``/proc/meminfo`` and a NUMA node's ``meminfo``."""

from __future__ import annotations

from dgxcheck.facts.missing import Gap, Missing
from probes.parse_scalar import garbled, is_decimal


def mem_total_kb(text: str, where: str) -> int | Missing:
    """``MemTotal:  528278540 kB``; a node's file puts ``Node 0`` before it."""
    for line in text.splitlines():
        name, found, value = line.partition("MemTotal:")
        if found and (not name or name.startswith("Node ")):
            number, _, unit = value.strip().partition(" ")
            return int(number) if is_decimal(number) and unit == "kB" else garbled(line, where)
    return Missing(Gap.GARBLED, where, "no MemTotal line")
