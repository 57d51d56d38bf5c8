"""Singular and plural in messages, and messages made of several."""

from __future__ import annotations

from collections.abc import Iterable

from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.facts.record import replace


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 error``, ``2 errors``, ``3 switches``"""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def combined_message(judgements: Iterable[Judgement]) -> str:
    """The messages of several judgements of one subject, each once."""
    return "; ".join(dict.fromkeys(judgement.message for judgement in judgements))


def extended(judgement: Judgement, more: str) -> Judgement:
    """The judgement with more text behind its message."""
    return replace(judgement, message=f"{judgement.message}{more}")
