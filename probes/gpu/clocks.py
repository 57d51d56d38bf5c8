"""A GPU's clocks, and what holds them down."""

from __future__ import annotations

from dgxcheck.facts.gpu import ClockPair, Clocks, EventReasons, GpuClocks, SupportedClocks
from dgxcheck.facts.missing import Gap, Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.quantities import facts_of, nested, plain
from probes.gpu.values import as_number, number, numbers

PSTATE_UNKNOWN = 32
REASONS = (
    "gpu_idle",
    "applications_clocks_setting",
    "sw_power_cap",
    "hw_slowdown",
    "sync_boost",
    "sw_thermal_slowdown",
    "hw_thermal_slowdown",
    "hw_power_brake_slowdown",
    "display_clocks_setting",
    "board_limit",
    "reliability",
)
"""Names of the bits of ``nvmlClocksEventReasons``, from 0x1 up."""


def probe(source: Source) -> tuple[GpuClocks, ...] | Missing:
    """``nvmlDeviceGetClockInfo``, ``GetApplicationsClock``, ``GetCurrentClocksEventReasons`` and the like."""
    return per_gpu(source, _clocks)


def event_reasons(mask: int) -> EventReasons:
    """A mask of ``nvmlClocksEventReasons`` by name."""
    named = (1 << len(REASONS)) - 1
    active = tuple(name for bit, name in enumerate(REASONS) if mask >> bit & 1)
    return EventReasons(mask=mask, active=active, unknown=mask & ~named)


def _clocks(source: Source, bdf: str) -> GpuClocks:
    facts = facts_of(source, "clocks", bdf)
    mask = number(source, "nvmlDeviceGetCurrentClocksEventReasons", bdf)
    return GpuClocks(
        bdf=bdf,
        current=Clocks(**nested(facts, "current")),
        max=Clocks(**nested(facts, "max")),
        application=ClockPair(**nested(facts, "application")),
        default_application=ClockPair(**nested(facts, "default_application")),
        max_customer_boost=ClockPair(**nested(facts, "max_customer_boost")),
        supported=_supported(source, bdf),
        reasons=mask if isinstance(mask, Missing) else event_reasons(mask),
        performance_state=_performance_state(source, bdf),
        **plain(facts),
    )


def _supported(source: Source, bdf: str) -> tuple[SupportedClocks, ...] | Missing:
    memory_clocks = numbers(source, "nvmlDeviceGetSupportedMemoryClocks", bdf)
    if isinstance(memory_clocks, Missing):
        return memory_clocks
    return tuple(
        SupportedClocks(memory=mhz, graphics=numbers(source, "nvmlDeviceGetSupportedGraphicsClocks", bdf, mhz))
        for mhz in memory_clocks
    )


def _performance_state(source: Source, bdf: str) -> int | Missing:
    """``nvmlPstates_t``: 0 to 15, or 32 for unknown."""
    state, where = number(source, "nvmlDeviceGetPerformanceState", bdf), question("nvmlDeviceGetPerformanceState", bdf)
    if state == PSTATE_UNKNOWN:
        return Missing(Gap.UNSUPPORTED, where, "unknown to the driver")
    return as_number(state, where, high=15)
