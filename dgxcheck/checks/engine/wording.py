"""Singular and plural in messages, and text added to a message."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.facts.missing import is_number
from dgxcheck.facts.record import replace


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 error``, ``2 errors``, ``3 switches``"""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def first_of(names: Sequence[str], most: int = 4) -> str:
    """``GPU0, GPU1``; of more than ``most`` names the first, and how many others there are: ``GPU0 and 7 more``."""
    shown = ", ".join(names[:most])
    return shown if len(names) <= most else f"{shown} and {len(names) - most} more"


def extended(judgement: Judgement, more: str) -> Judgement:
    """The judgement with more text behind its message."""
    return replace(judgement, message=f"{judgement.message}{more}")


def against(measured: object, expected: object, unit: str) -> str:
    """``x8 of x16``, ``88 °C, limit 87``; empty unless both are numbers."""
    if not (is_number(measured) and is_number(expected)):
        return ""
    if unit == "lanes":
        return f"x{measured:g} of x{expected:g}"
    if len(unit) > 3 and unit.isalpha() and max(measured, expected) == 1:  # not us or GB/s
        unit = unit.removesuffix("s")
    if measured < expected:
        return f"{measured:g} of {expected:g} {unit}".rstrip()
    return f"{measured:g} {unit}".rstrip() + (f", limit {expected:g}" if expected else "")
