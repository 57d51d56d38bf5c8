"""A GPU's clocks, and what holds them down."""

from __future__ import annotations

from dgxcheck.facts.gpu import ClockPair, Clocks, EventReasons, GpuClocks, SupportedClocks
from dgxcheck.facts.missing import Gap, Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import each
from probes.gpu.values import as_number, is_on, number, numbers, outputs

GRAPHICS, SM, MEMORY, VIDEO = range(4)  # nvmlClockType_t
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
    return each(source, _clocks)


def event_reasons(mask: int) -> EventReasons:
    """A mask of ``nvmlClocksEventReasons`` by name."""
    named = (1 << len(REASONS)) - 1
    active = tuple(name for bit, name in enumerate(REASONS) if mask >> bit & 1)
    return EventReasons(mask=mask, active=active, unknown=mask & ~named)


def _clocks(source: Source, bdf: str) -> GpuClocks:
    boost, boost_default = outputs(source, "nvmlDeviceGetAutoBoostedClocksEnabled", bdf, count=2)
    boost_where = question("nvmlDeviceGetAutoBoostedClocksEnabled", bdf)
    mask = number(source, "nvmlDeviceGetCurrentClocksEventReasons", bdf)
    return GpuClocks(
        bdf=bdf,
        current=_four(source, "nvmlDeviceGetClockInfo", bdf),
        max=_four(source, "nvmlDeviceGetMaxClockInfo", bdf),
        application=_two(source, "nvmlDeviceGetApplicationsClock", bdf),
        default_application=_two(source, "nvmlDeviceGetDefaultApplicationsClock", bdf),
        max_customer_boost=_two(source, "nvmlDeviceGetMaxCustomerBoostClock", bdf),
        supported=_supported(source, bdf),
        auto_boost=is_on(boost, boost_where),
        auto_boost_default=is_on(boost_default, boost_where),
        reasons=mask if isinstance(mask, Missing) else event_reasons(mask),
        performance_state=_performance_state(source, bdf),
    )


def _four(source: Source, function: str, bdf: str) -> Clocks:
    graphics, sm, memory, video = (number(source, function, bdf, clock) for clock in (GRAPHICS, SM, MEMORY, VIDEO))
    return Clocks(graphics=graphics, sm=sm, memory=memory, video=video)


def _two(source: Source, function: str, bdf: str) -> ClockPair:
    return ClockPair(graphics=number(source, function, bdf, GRAPHICS), memory=number(source, function, bdf, MEMORY))


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
