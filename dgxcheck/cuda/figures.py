"""Facts out of samples: what a step answers."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from dgxcheck import __version__
from dgxcheck.cuda.driver import CudaError

TOOL = f"dgxcheck {__version__}"
Fact = dict[str, Any]


def figure(samples: Sequence[float], unit: str, method: str, **more: Any) -> Fact:
    """The median of the samples, which are kept."""
    return {
        "value": _short(median(samples)),
        "unit": unit,
        "method": f"{method}, median of {len(samples)}",
        "samples": [_short(each) for each in samples],
        **more,
    }


def single(value: float | bool | None, unit: str, method: str, **more: Any) -> Fact:
    """A figure that no repeating makes better: a count, a yes or no."""
    return {"value": value, "unit": unit, "method": method, **more}


def skipped(reason: str, detail: str) -> Fact:
    """Nothing was measured, and nothing is wrong for that."""
    return {"skipped": reason, "detail": detail}


def failed(error: CudaError) -> Fact:
    """The driver refused, or broke down."""
    return {"failed": error.name, "code": error.code, "detail": error.call}


def _short(value: float) -> float:
    """Five digits: more than any clock is worth."""
    return float(f"{value:.5g}")
