"""Singular and plural in messages."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """``1 error``, ``2 errors``, ``3 switches``"""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
