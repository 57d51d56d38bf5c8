"""Speed and width of a PCIe link as the kernel words them, old and new."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing
from probes.parse_scalar import garbled

# Kernels up to 5.6 print "8 GT/s", later ones "8.0 GT/s PCIe".
_GENERATIONS = {
    "2.5": 1,
    "5": 2,
    "5.0": 2,
    "8": 3,
    "8.0": 3,
    "16": 4,
    "16.0": 4,
    "32": 5,
    "32.0": 5,
    "64": 6,
    "64.0": 6,
    "128.0": 7,
}
_WIDTHS = {"1": 1, "2": 2, "4": 4, "8": 8, "12": 12, "16": 16, "32": 32}


def link_gen(text: str, where: str) -> int | Missing:
    """PCIe generation from ``current_link_speed`` or ``max_link_speed``."""
    rate, unit, tail = text.partition("GT/s")
    generation = _GENERATIONS.get(rate.strip())
    if generation is None or not unit or tail.strip() not in ("", "PCIe"):
        return garbled(text, where)
    return generation


def link_width(text: str, where: str) -> int | Missing:
    """Lanes from ``current_link_width``; 0 is no link, 63 and 255 are what dead devices read."""
    width = _WIDTHS.get(text.strip())
    return garbled(text, where) if width is None else width
