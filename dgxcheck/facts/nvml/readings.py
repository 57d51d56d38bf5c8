"""What is read of a GPU again and again: clocks, counters, memory and its errors, power, temperature, PCIe link."""

from __future__ import annotations

from dgxcheck.facts import nature
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record


class Clocks(Record):
    """MHz by ``nvmlClockType_t``."""

    graphics: int | Missing = nature.capability("graphics clock", "MHz")
    sm: int | Missing = nature.capability("SM clock", "MHz")
    memory: int | Missing = nature.capability("memory clock", "MHz")
    video: int | Missing = nature.capability("video clock", "MHz")


class ClockPair(Record):
    """MHz of the two clocks that can be set."""

    graphics: int | Missing = nature.setting("graphics clock", "MHz")
    memory: int | Missing = nature.setting("memory clock", "MHz")


class SupportedClocks(Record):
    """The graphics clocks that go with a memory clock, MHz."""

    memory: int = nature.capability("supported memory clock", "MHz")
    graphics: tuple[int, ...] | Missing = nature.capability("supported graphics clocks", "MHz")


class EventReasons(Record):
    """Why clocks are below what was asked for (``nvmlClocksEventReasons``)."""

    mask: int = nature.load("clock event reasons", "hex")
    active: tuple[str, ...] = nature.load("clock event reasons")
    """Names of the bits that have one, lowest first."""
    unknown: int = nature.load("unnamed clock event reasons", "hex")
    """The other bits."""


class GpuClocks(Record, where="nvml clocks"):
    """Clocks of one GPU."""

    bdf: str = nature.key()
    current: Clocks = nature.load(prefix="current", most="max")
    max: Clocks = nature.holder(prefix="highest", low=1, high=18_000)
    application: ClockPair = nature.setting(prefix="application", most="max", fix="-rac")
    """Without a getter from CUDA 14 on."""
    default_application: ClockPair = nature.holder(prefix="default application", most="max")
    max_customer_boost: ClockPair = nature.holder(prefix="highest customer boost", low=1, high=18_000)
    supported: tuple[SupportedClocks, ...] | Missing = nature.capability(
        "supported clocks", asked="DeviceGetSupportedMemoryClocks"
    )
    auto_boost: bool | Missing = nature.setting(fix="--auto-boost-default={:d}")
    auto_boost_default: bool | Missing = nature.capability(fix="--auto-boost-default={:d}")
    reasons: EventReasons | Missing = nature.load("clock event reasons")
    performance_state: int | Missing = nature.load("performance state")
    """N of PN."""


class GpuCounters(Record, where="nvml counters"):
    """Counters of one GPU; ``_ns`` is time spent below the wanted clocks for that reason."""

    bdf: str = nature.key()
    pcie_replays: int | Missing = nature.counter("PCIe replays", limit="pcie.replay")
    power_ns: int | Missing = nature.counter("time held down by power", "ns", limit="power.violation")
    thermal_ns: int | Missing = nature.counter("time held down by heat", "ns", limit="clock.throttle")
    sync_boost_ns: int | Missing = nature.counter("time held down by sync boost", "ns", any="chosen by who groups GPUs")
    board_limit_ns: int | Missing = nature.counter("time held down by the board limit", "ns", limit="power.violation")
    low_utilization_ns: int | Missing = nature.counter(
        "time held down for lack of work", "ns", any="an idle GPU has much of it"
    )
    reliability_ns: int | Missing = nature.counter("time held down by reliability", "ns", limit="clock.throttle")
    sw_thermal_ns: int | Missing = nature.counter("time of software thermal slowdown", "ns", limit="clock.throttle")
    """As the next two from R570 on."""
    hw_thermal_ns: int | Missing = nature.counter("time of hardware thermal slowdown", "ns", limit="clock.throttle")
    brake_ns: int | Missing = nature.counter("time of the power brake", "ns", limit="clock.throttle")
    energy_mj: int | Missing = nature.counter("energy", "mJ", any="every GPU draws some")
    """Since the driver was loaded; from Volta on."""
    clock_us: int | Missing = nature.load("time stamp", "us")
    """CPU time stamp of the power counter."""
    reasons_mask: int | Missing = nature.load("clock event reasons", "hex")
    """``nvmlClocksEventReasons``: no counter, but what holds clocks down twice holds them down for long."""


class EccCounts(Record):
    """Errors of one type and period, in all and by ``nvmlMemoryLocation_t``; a board counts in some of these."""

    total: int | Missing = nature.counter("ECC errors")
    l1_cache: int | Missing = nature.counter("L1 cache errors", most="total")
    l2_cache: int | Missing = nature.counter("L2 cache errors", most="total")
    device_memory: int | Missing = nature.counter("DRAM errors", most="total", part_of="total")
    """DRAM."""
    register_file: int | Missing = nature.counter("register file errors", most="total")
    texture_memory: int | Missing = nature.counter("texture memory errors", most="total")
    texture_shared: int | Missing = nature.counter("shared texture memory errors", most="total")
    cbu: int | Missing = nature.counter("CBU errors", most="total")
    sram: int | Missing = nature.counter("SRAM errors", most="total", part_of="total")


class RetiredPage(Record):
    """One page that the driver no longer uses."""

    address: int = nature.identity("page address", "hex")
    timestamp: int | Missing = nature.load("time of retirement", "s since 1970")
    """Seconds since 1970; from R410 and Pascal on."""


class SramErrors(Record):
    """Uncorrected SRAM errors over a GPU's life, by protection and by place (``nvmlEccSramErrorStatus_t``)."""

    parity: int | Missing = nature.counter("SRAM parity errors", limit=0, of_life=True)
    secded: int | Missing = nature.counter("SRAM SEC-DED errors", limit=0, of_life=True)
    l2: int | Missing = nature.counter("SRAM errors of the L2 cache", limit=0, of_life=True)
    sm: int | Missing = nature.counter("SRAM errors of SMs", limit=0, of_life=True)
    pcie: int | Missing = nature.counter("SRAM errors of PCIe", limit=0, of_life=True)
    mcu: int | Missing = nature.counter("SRAM errors of microcontrollers", limit=0, of_life=True)
    other: int | Missing = nature.counter("other SRAM errors", limit=0, of_life=True)


class GpuEcc(Record, where="nvml ecc"):
    """Error counters of one GPU: volatile since the driver was loaded, aggregate over its life."""

    bdf: str = nature.key()
    volatile_corrected: EccCounts = nature.counter(prefix="volatile corrected", limit="ecc.corrected-rate")
    volatile_uncorrected: EccCounts = nature.counter(prefix="volatile uncorrected", limit=0)
    aggregate_corrected: EccCounts = nature.counter(
        prefix="aggregate corrected", of_life=True,
        any="grows with the volatile count, of which ecc.corrected judges the rate",
    )
    aggregate_uncorrected: EccCounts = nature.counter(prefix="aggregate uncorrected", limit=0, of_life=True)
    retired_single_bit: tuple[RetiredPage, ...] | Missing = nature.counter(
        "pages retired for single-bit errors", limit=0, of_life=True
    )
    """Pages with several single-bit errors; K80 to V100."""
    retired_double_bit: tuple[RetiredPage, ...] | Missing = nature.counter(
        "pages retired for double-bit errors", limit=0, of_life=True
    )
    retirement_pending: bool | Missing = nature.state(
        "page retirement pending", by="ecc.retirement-pending", good=(False,)
    )
    remapped_corrected: int | Missing = nature.counter(
        "rows remapped for corrected errors", limit=0, of_life=True, high=1 << 16, asked="DeviceGetRemappedRows"
    )
    """Rows remapped for corrected errors; from Ampere on, unsupported while MIG instances are active."""
    remapped_uncorrected: int | Missing = nature.counter(
        "rows remapped for uncorrected errors", limit=0, of_life=True, high=1 << 16, asked="DeviceGetRemappedRows"
    )
    remap_pending: bool | Missing = nature.state(
        "row remapping pending", by="ecc.row-remap", good=(False,), asked="DeviceGetRemappedRows"
    )
    remap_failed: bool | Missing = nature.state(
        "row remapping failed", by="ecc.row-remap", good=(False,), asked="DeviceGetRemappedRows"
    )
    sram_exceeded: bool | Missing = nature.state("SRAM error threshold exceeded", by="ecc.sram", good=(False,))
    """Have uncorrected SRAM errors reached NVIDIA's threshold for an RMA? From Ampere and R550 on."""
    sram: SramErrors = nature.counter("SRAM errors", any="ecc.sram judges NVIDIA's threshold for an RMA")
    channel_repair_pending: bool | Missing = nature.state("channel repair pending", by="ecc.repair", good=(False,))
    """Is a memory channel to be repaired at the next reset? As the next from R575 on."""
    tpc_repair_pending: bool | Missing = nature.state("TPC repair pending", by="ecc.repair", good=(False,))
    """Is a texture processing cluster (TPC) to be repaired?"""
    unrepairable: bool | Missing = nature.state("unrepairable memory", by="ecc.repair", good=(False,))
    """Has the GPU memory that no remapping and no repair can replace? From R580 on."""


class RowHistogram(Record):
    """Memory banks by how many spare rows they have left (``nvmlDeviceGetRowRemapperHistogram``)."""

    max: int | Missing = nature.counter("banks with all spare rows", any="every row that is remapped takes one")
    high: int | Missing = nature.counter("banks with many spare rows", any="NVIDIA: one row of a bank is used")
    partial: int | Missing = nature.counter("banks with some spare rows", limit=0, of_life=True)
    low: int | Missing = nature.counter("banks with few spare rows", limit=0, of_life=True)
    none: int | Missing = nature.counter("banks without spare rows", limit=0, of_life=True)


class GpuMemory(Record, where="nvml memory"):
    """Memory of one GPU, in bytes."""

    bdf: str = nature.key()
    total: int | Missing = nature.inventory(
        "memory", "bytes", better="more", tolerance="gpu.uniform-memory", low=1 << 26, high=1 << 50
    )
    """Net of the driver's reserve up to R470, the physical size from R510 on."""
    reserved: int | Missing = nature.inventory(
        "reserved memory", "bytes", most="total", tolerance="gpu.uniform-memory", slack=1 << 30,
        any="each version of the driver keeps another amount",
    )  # fmt: skip
    """From R510 on; eight GPUs of one dump have the same to the MiB (nvidia-smi -q of A100, H100, B200 machines)."""
    free: int | Missing = nature.load("free memory", "bytes", most="total", part_of="total")
    used: int | Missing = nature.load("memory in use", "bytes", most="total", part_of="total")
    ecc: bool | Missing = nature.setting("ECC mode", fix="-e {:d}")
    ecc_pending: bool | Missing = nature.setting("pending ECC mode", fix="-e {:d}")
    """The mode after the next reboot."""
    row_histogram: RowHistogram = nature.counter("memory banks by spare rows", low=0, high=1 << 16)
    """Missing throughout before Ampere and while MIG instances are active."""


class GpuPcie(Record, where="nvml pcie"):
    """PCI link and BAR1 of one GPU."""

    bdf: str = nature.key()
    link_gen: int | Missing = nature.load("PCIe generation", most="max_link_gen", low=1, high=8)
    """Drops on an idle K80, which is no fault."""
    link_width: int | Missing = nature.state("PCIe lanes", among="place", most="max_link_width", low=1, high=32)
    max_link_gen: int | Missing = nature.capability("highest PCIe generation", among="place", most="gpu_max_link_gen")
    """What GPU and slot can do together (``nvmlDeviceGetMaxPcieLinkGeneration``)."""
    max_link_width: int | Missing = nature.capability("highest number of PCIe lanes", among="place")
    gpu_max_link_gen: int | Missing = nature.capability("GPU's own highest PCIe generation")
    """What the GPU alone can do; from R525 on."""
    bar1_total: int | Missing = nature.setting("BAR1", "bytes", better="more")
    """Bytes, as the next two."""
    bar1_free: int | Missing = nature.load("free BAR1", "bytes", most="bar1_total", part_of="bar1_total")
    bar1_used: int | Missing = nature.load("BAR1 in use", "bytes", most="bar1_total", part_of="bar1_total")


class GpuPower(Record, where="nvml power"):
    """Power of one GPU, in milliwatts."""

    bdf: str = nature.key()
    usage_mw: int | Missing = nature.gauge(
        "power draw", "mW", low=1, high=4_000_000, any="peaks of milliseconds pass the limit, which power.limit judges"
    )
    enforced_limit_mw: int | Missing = nature.setting(
        "enforced power limit", "mW", most="max_limit_mw", low=1, high=4_000_000
    )
    """The lowest of all limits that apply."""
    limit_mw: int | Missing = nature.setting("power limit", "mW")
    default_limit_mw: int | Missing = nature.capability("default power limit", "mW", most="max_limit_mw")
    min_limit_mw: int | Missing = nature.capability("lowest power limit", "mW", most="default_limit_mw")
    max_limit_mw: int | Missing = nature.capability("highest power limit", "mW")


class GpuThermal(Record, where="nvml thermal"):
    """Temperatures of one GPU, in degrees Celsius."""

    bdf: str = nature.key()
    gpu_c: int | Missing = nature.gauge("temperature", "°C", low=1, high=150)
    memory_c: int | Missing = nature.gauge("memory temperature", "°C", low=0, high=150)
    """HBM, from V100 on (field 82)."""
    shutdown_c: int | Missing = nature.capability("shutdown temperature", "°C")
    slowdown_c: int | Missing = nature.capability("slowdown temperature", "°C", most="shutdown_c", low=40, high=150)
    memory_max_c: int | Missing = nature.capability("highest memory temperature", "°C")
    gpu_max_c: int | Missing = nature.capability("highest temperature", "°C", most="shutdown_c")
    """Highest for normal operation; K80 and P100 have none."""
    margin_c: int | Missing = nature.gauge("temperature margin", "°C", high=150)
    """T.Limit; the slowdown is at slowdown_tlimit_c. From R570 on."""
    shutdown_tlimit_c: int | Missing = nature.capability("margin at shutdown", "°C")
    """The margin at which it shuts down, 0 or negative (field 193); Hopper gives these four in place of degrees."""
    slowdown_tlimit_c: int | Missing = nature.capability("margin at slowdown", "°C")
    memory_max_tlimit_c: int | Missing = nature.capability("margin at the highest memory temperature", "°C")
    gpu_max_tlimit_c: int | Missing = nature.capability("margin at the highest temperature", "°C")
    fan_percent: int | Missing = nature.gauge("fan speed", "%")
    """Unsupported on boards that the chassis cools."""
