"""What was measured of a machine under load, by dgxcheck or by a tool whose output was imported."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import Record

How = Literal["measured", "simulated", "imported"]
MANY_RANKS = "many"
"""In place of the number of ranks of a collective: more than twenty, whose rates are rounded too much to derive it."""
WITHHELD, INTERRUPTED = "integrity", "interrupted"
"""Failures of dgxcheck's own: a figure is not published where its data arrived wrong; measuring was interrupted."""


class NotMeasured(Record, kw_only=False, nature="event"):
    """Why there is no figure."""

    reason: str
    """``failed`` where the driver or the tool failed, else the reason of a skip: ``busy``, ``not-configured``."""
    detail: str
    code: int | None = None
    """The CUresult of a failed driver call."""
    failure: str = ""
    """What failed: the name of the CUresult, ``WITHHELD`` or ``INTERRUPTED``."""

    def __str__(self) -> str:
        """For people: ``CUDA_ERROR_ECC_UNCORRECTABLE: cuStreamQuery``."""
        return ": ".join(filter(None, (self.failure, self.detail))) or "no reason given"


class Measurement(Record, nature="event"):
    """One figure of one GPU, or of one direction between two."""

    kind: str
    """``host-to-device``, ``p2p``, ``latency``, ..: man page ``dgxcheck-recording(5)`` lists them."""
    a: str
    """bdf, or NVML's index where the output of a tool was imported without a box, or ``all``."""
    b: str
    """The GPU at the other end; empty for what is measured at one."""
    value: int | float | bool | Missing | NotMeasured | None
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

    @property
    def failed(self) -> bool:
        """Was it attempted without a result?"""
        return isinstance(self.value, NotMeasured) and self.value.reason == "failed"


def of_ranks(row: Measurement) -> str:
    """``all_reduce over 16 GPUs of 2 hosts``, of a collective."""
    hosts = row.more.get("hosts")
    return f"{row.a} over {row.b} GPUs" + (f" of {hosts} hosts" if isinstance(hosts, int) and hosts > 1 else "")
