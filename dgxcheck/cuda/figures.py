"""Facts from samples: the answers of steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dgxcheck import __version__
from dgxcheck.cuda.driver import CudaError
from dgxcheck.facts.typical import median

TOOL = f"dgxcheck {__version__}"
Fact = dict[str, Any]


def figure(samples: Sequence[float], unit: str, method: str, **more: Any) -> Fact:
    """A fact with the median of the samples, and the samples."""
    return {"value": _short(median(samples)), "unit": unit, "method": f"{method}, median of {len(samples)}",
            "samples": [_short(sample) for sample in samples], **more}


def single(value: float | bool | None, unit: str, method: str, **more: Any) -> Fact:
    """A fact of a single value: a count, a yes or no."""
    return {"value": value, "unit": unit, "method": method, **more}


def skipped(reason: str, detail: str) -> Fact:
    """A fact of a step that was not measured, which is not a fault."""
    return {"skipped": reason, "detail": detail}


def failed(error: CudaError) -> Fact:
    """A fact of a step that failed with a CUDA error."""
    return {"failed": error.name, "code": error.code, "detail": error.call}


def _short(value: float) -> float:
    """Rounded to five digits."""
    return float(f"{value:.5g}")
