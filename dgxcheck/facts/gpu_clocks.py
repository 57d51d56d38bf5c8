"""A GPU's clocks, and what holds them down."""

from __future__ import annotations

from dataclasses import dataclass

from dgxcheck.reading import Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """MHz by ``nvmlClockType_t``."""

    graphics: int | Missing
    sm: int | Missing
    memory: int | Missing
    video: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockPair:
    """MHz of the two clocks that can be set."""

    graphics: int | Missing
    memory: int | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class SupportedClocks:
    """The graphics clocks that go with a memory clock, MHz."""

    memory: int
    graphics: tuple[int, ...] | Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class EventReasons:
    """Why clocks are below what was asked for (``nvmlClocksEventReasons``)."""

    mask: int
    active: tuple[str, ...]
    """Names of the bits that have one, lowest first."""
    unknown: int
    """The other bits."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuClocks:
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
