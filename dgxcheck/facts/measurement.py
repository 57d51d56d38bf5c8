"""What was measured of a machine under load, by dgxcheck or by a tool whose output was imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import Record

How = Literal["measured", "simulated", "imported"]


class Untaken(Record, kw_only=False):
    """Why nothing was measured: ``failed`` where the driver refused or broke down, else the reason of a skip."""

    reason: str
    detail: str
    code: int | None = None
    """The driver's CUresult."""


class Measurement(Record):
    """One figure of one GPU, or of one direction between two."""

    kind: str
    """``host-to-device``, ``p2p``, ``latency``, ..: man page ``dgxcheck-recording(5)`` lists them."""
    a: str
    """bdf, or NVML's index where the output of a tool was imported without a box, or ``all``."""
    b: str
    """The GPU at the other end; empty for what is measured at one."""
    value: int | float | bool | Missing | Untaken | None
    """In ``unit``; None for what has no figure of its own (``under-load``)."""
    unit: str
    method: str
    tool: str
    how: How
    samples: tuple[float, ...]
    """All that the figure is the median of."""
    runs: tuple[float, ...]
    """The figures of several runs, where there were several."""
    more: Mapping[str, Json]
    """Members of this kind alone."""

    @property
    def number(self) -> float | None:
        """The figure; None where there is none."""
        value = self.value
        return float(value) if isinstance(value, int | float) else None
