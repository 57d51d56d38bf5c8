"""Singular and plural in messages, and text added to a message."""

from __future__ import annotations

from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.facts.record import replace


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 error``, ``2 errors``, ``3 switches``"""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def extended(judgement: Judgement, more: str) -> Judgement:
    """The judgement with more text behind its message."""
    return replace(judgement, message=f"{judgement.message}{more}")
