"""A GPU's clocks, and what holds them down."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class Clocks(Record):
    """MHz by ``nvmlClockType_t``."""

    graphics: int | Missing
    sm: int | Missing
    memory: int | Missing
    video: int | Missing


class ClockPair(Record):
    """MHz of the two clocks that can be set."""

    graphics: int | Missing
    memory: int | Missing


class SupportedClocks(Record):
    """The graphics clocks that go with a memory clock, MHz."""

    memory: int
    graphics: tuple[int, ...] | Missing


class EventReasons(Record):
    """Why clocks are below what was asked for (``nvmlClocksEventReasons``)."""

    mask: int
    active: tuple[str, ...]
    """Names of the bits that have one, lowest first."""
    unknown: int
    """The other bits."""


class GpuClocks(Record):
    """Clocks of one GPU."""

    bdf: str
    current: Clocks
    max: Clocks
    application: ClockPair
    """Without a getter from CUDA 14 on."""
    default_application: ClockPair
    max_customer_boost: ClockPair
    supported: tuple[SupportedClocks, ...] | Missing
    auto_boost: bool | Missing
    auto_boost_default: bool | Missing
    reasons: EventReasons | Missing
    performance_state: int | Missing
    """N of PN."""
