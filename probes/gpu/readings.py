"""What a GPU reports of its memory, errors, clocks, power, temperatures and PCI link."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing, need, or_gap, question
from dgxcheck.facts.nvml.quantities import COUNTER_TYPES, ERROR_TYPES
from dgxcheck.facts.nvml.readings import (
    ClockPair,
    Clocks,
    EccCounts,
    EventReasons,
    GpuClocks,
    GpuCounters,
    GpuEcc,
    GpuMemory,
    GpuPcie,
    GpuPower,
    GpuThermal,
    RetiredPage,
    RowHistogram,
    SramErrors,
    SupportedClocks,
)
from dgxcheck.source.protocol import Source
from probes.ask import mapped
from probes.gpu.answers import (
    as_number,
    facts_of,
    member,
    number,
    numbers,
    per_gpu,
    structs,
)


def gpu_memory(source: Source) -> tuple[GpuMemory, ...] | Missing:
    """``nvmlDeviceGetMemoryInfo``, ``GetEccMode`` and ``GetRowRemapperHistogram`` of every GPU."""
    kinds = {"row_histogram": RowHistogram}
    return per_gpu(source, lambda _, bdf: GpuMemory(bdf=bdf, **facts_of(source, "memory", bdf, **kinds)))


_RETIRED = "nvmlDeviceGetRetiredPages"
SINGLE_BIT, DOUBLE_BIT = 0, 1  # nvmlPageRetirementCause_t
_COUNTED = [f"{counter}_{error}" for counter in COUNTER_TYPES for error in ERROR_TYPES]


def gpu_ecc(source: Source) -> tuple[GpuEcc, ...] | Missing:
    """``nvmlDeviceGetTotalEccErrors``, ``GetMemoryErrorCounter``, ``GetRetiredPages`` and ``GetRemappedRows``."""
    return per_gpu(source, _ecc)


def _ecc(source: Source, bdf: str) -> GpuEcc:
    return GpuEcc(
        bdf=bdf,
        retired_single_bit=_retired(source, bdf, SINGLE_BIT),
        retired_double_bit=_retired(source, bdf, DOUBLE_BIT),
        **facts_of(source, "ecc", bdf, sram=SramErrors, **dict.fromkeys(_COUNTED, EccCounts)),
    )


@or_gap
def _retired(source: Source, bdf: str, cause: int) -> tuple[RetiredPage, ...]:
    """A page whose address is garbled spoils the list: its length is what counts."""
    listed, where = structs(source, _RETIRED, bdf, cause), question(_RETIRED, bdf, cause)
    return tuple(
        RetiredPage(address=need(as_number(page.get("address"), where)), timestamp=member(page, "timestamp", where))
        for page in need(listed)
    )


def gpu_counters(source: Source) -> tuple[GpuCounters, ...] | Missing:
    """``nvmlDeviceGetPcieReplayCounter`` and ``nvmlDeviceGetViolationStatus`` of every GPU."""
    return per_gpu(source, lambda _, bdf: GpuCounters(bdf=bdf, **facts_of(source, "counters", bdf)))


PSTATE_UNKNOWN = 32
REASONS = (
    "gpu_idle", "applications_clocks_setting", "sw_power_cap", "hw_slowdown", "sync_boost", "sw_thermal_slowdown",
    "hw_thermal_slowdown", "hw_power_brake_slowdown", "display_clocks_setting", "board_limit", "reliability",
)  # fmt: skip
"""Names of the bits of ``nvmlClocksEventReasons``, from 0x1 up."""


def gpu_clocks(source: Source) -> tuple[GpuClocks, ...] | Missing:
    """``nvmlDeviceGetClockInfo``, ``GetApplicationsClock``, ``GetCurrentClocksEventReasons`` and the like."""
    return per_gpu(source, _clocks)


def event_reasons(mask: int) -> EventReasons:
    """A mask of ``nvmlClocksEventReasons`` by name."""
    named = (1 << len(REASONS)) - 1
    active = tuple(name for bit, name in enumerate(REASONS) if mask >> bit & 1)
    return EventReasons(mask=mask, active=active, unknown=mask & ~named)


def _clocks(source: Source, bdf: str) -> GpuClocks:
    mask = number(source, "nvmlDeviceGetCurrentClocksEventReasons", bdf)
    return GpuClocks(
        bdf=bdf,
        supported=_supported(source, bdf),
        reasons=mask if isinstance(mask, Missing) else event_reasons(mask),
        performance_state=_performance_state(source, bdf),
        **facts_of(source, "clocks", bdf, current=Clocks, max=Clocks, application=ClockPair,
                   default_application=ClockPair, max_customer_boost=ClockPair),
    )  # fmt: skip


def _supported(source: Source, bdf: str) -> tuple[SupportedClocks, ...] | Missing:
    def clocks(mhz: int) -> SupportedClocks:
        graphics = numbers(source, "nvmlDeviceGetSupportedGraphicsClocks", bdf, mhz)
        return SupportedClocks(memory=mhz, graphics=graphics)

    return mapped(numbers(source, "nvmlDeviceGetSupportedMemoryClocks", bdf), clocks)


def _performance_state(source: Source, bdf: str) -> int | Missing:
    """``nvmlPstates_t``: 0 to 15, or 32 for unknown."""
    unknown = {PSTATE_UNKNOWN: "unknown to the driver"}
    return number(source, "nvmlDeviceGetPerformanceState", bdf, high=15, unknown=unknown)


def gpu_power(source: Source) -> tuple[GpuPower, ...] | Missing:
    """``nvmlDeviceGetPowerUsage`` and the power limits of every GPU."""
    return per_gpu(source, lambda _, bdf: GpuPower(bdf=bdf, **facts_of(source, "power", bdf)))


def gpu_thermal(source: Source) -> tuple[GpuThermal, ...] | Missing:
    """``nvmlDeviceGetTemperature``, ``GetTemperatureThreshold``, ``GetFieldValues`` and ``GetFanSpeed``."""
    return per_gpu(source, lambda _, bdf: GpuThermal(bdf=bdf, **facts_of(source, "thermal", bdf)))


def gpu_pcie(source: Source) -> tuple[GpuPcie, ...] | Missing:
    """``nvmlDeviceGetCurrPcieLink...``, ``GetMaxPcieLink...`` and ``GetBAR1MemoryInfo`` of every GPU."""
    return per_gpu(source, lambda _, bdf: GpuPcie(bdf=bdf, **facts_of(source, "pcie", bdf)))
