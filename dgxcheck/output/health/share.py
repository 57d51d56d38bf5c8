"""How much of what was expected a figure reaches."""

from __future__ import annotations

from dgxcheck.readiness.figures import Figure

LOW = 0.9
"""Below this share a figure is shown with its percentage."""
_LESS_IS_BETTER = ("latency", "latency-off", "latency-sm")


def share(figure: Figure) -> float | None:
    """1 for all of it; None where nothing is expected or nothing was measured. Of a latency the inverse."""
    number, expected = figure.row.number, figure.expected
    if number is None or not expected or number < 0:
        return None
    if figure.row.kind in _LESS_IS_BETTER:
        return expected / number if number else None
    return number / expected


def percent_of(of: float) -> str:
    """``51%``"""
    return f"{100 * of:.0f}%"
