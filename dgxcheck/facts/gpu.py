"""GPUs as NVML describes them: identity, board, clocks, memory, ECC, power, temperature, modes and processes."""

from __future__ import annotations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record


class Gpu(Record):
    """One GPU of ``nvmlDeviceGetHandleByIndex``; a GPU that only PCI shows has no ``Gpu``."""

    bdf: str
    index: int | Missing
    """Missing where an imported text shows a part of NVML's list and does not say which."""
    name: str | Missing
    uuid: str | Missing
    serial: str | Missing
    minor: int | Missing
    """N of ``/dev/nvidiaN``."""
    vbios: str | Missing
    gpu_numa_id: int | Missing
    """NUMA node that the GPU's own memory forms (``nvmlDeviceGetNumaNodeId``), on Grace and POWER9 only."""


class Nvml(Record):
    """What NVML says of itself and which GPUs it lists."""

    driver_version: str | Missing
    nvml_version: str | Missing
    cuda_version: int | Missing
    """1000 x major + 10 x minor."""
    count: int | Missing
    gpus: tuple[Gpu, ...]
    lost: tuple[Missing, ...]
    """Indexes for which NVML gave no handle, with its reason."""


class GpuAffinity(Record):
    """Ideal CPUs and NUMA nodes of one GPU."""

    bdf: str
    cpulist: str | Missing
    """In the kernel's form: ``0-19,40-59``."""
    memory_nodes: tuple[int, ...] | Missing
    """From R450 on."""


class GpuBoard(Record):
    """What never changes of one GPU."""

    bdf: str
    pci_device_id: int | Missing
    """Device in the upper half, vendor in the lower: 0x1db110de (``nvmlPciInfo_t``)."""
    pci_subsystem_id: int | Missing
    brand: int | Missing
    """``nvmlBrandType_t``: 2 Tesla, 5 GeForce, 14 NVIDIA, 0 unknown."""
    architecture: int | Missing
    """``nvmlDeviceArchitecture_t``: 2 Kepler, 4 Pascal, 5 Volta, 7 Ampere, 9 Hopper."""
    compute_capability: tuple[int, int] | Missing
    """Major, minor."""
    board_id: int | Missing
    """Equal for both GPUs of a K80 on bare metal."""
    multi_gpu: bool | Missing
    """Is this one of several GPUs of a board?"""
    part_number: str | Missing
    inforom_image: str | Missing
    inforom_oem: str | Missing
    inforom_ecc: str | Missing
    inforom_power: str | Missing


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


class GpuCounters(Record):
    """Counters of one GPU; ``_ns`` is time spent below the wanted clocks for that reason."""

    bdf: str
    pcie_replays: int | Missing
    power_ns: int | Missing
    thermal_ns: int | Missing
    sync_boost_ns: int | Missing
    board_limit_ns: int | Missing
    low_utilization_ns: int | Missing
    reliability_ns: int | Missing
    clock_us: int | Missing
    """CPU time stamp of the power counter."""
    reasons_mask: int | Missing
    """``nvmlClocksEventReasons``: no counter, but what holds clocks down twice holds them down for long."""


class EccCounts(Record):
    """Errors of one type and period, in all and by ``nvmlMemoryLocation_t``; a board counts in some of these."""

    total: int | Missing
    l1_cache: int | Missing
    l2_cache: int | Missing
    device_memory: int | Missing
    """DRAM."""
    register_file: int | Missing
    texture_memory: int | Missing
    texture_shared: int | Missing
    cbu: int | Missing
    sram: int | Missing


class RetiredPage(Record):
    """One page that the driver no longer uses."""

    address: int
    timestamp: int | Missing
    """Seconds since 1970; from R410 and Pascal on."""


class GpuEcc(Record):
    """Error counters of one GPU: volatile since the driver was loaded, aggregate over its life."""

    bdf: str
    volatile_corrected: EccCounts
    volatile_uncorrected: EccCounts
    aggregate_corrected: EccCounts
    aggregate_uncorrected: EccCounts
    retired_single_bit: tuple[RetiredPage, ...] | Missing
    """Pages with several single-bit errors; K80 to V100."""
    retired_double_bit: tuple[RetiredPage, ...] | Missing
    retirement_pending: bool | Missing
    remapped_corrected: int | Missing
    """Rows remapped for corrected errors; from Ampere on, unsupported while MIG instances are active."""
    remapped_uncorrected: int | Missing
    remap_pending: bool | Missing
    remap_failed: bool | Missing
    sram_exceeded: bool | Missing
    """Have uncorrected SRAM errors reached NVIDIA's threshold for an RMA? From Ampere and R550 on."""
    channel_repair_pending: bool | Missing
    """Is a memory channel to be repaired at the next reset? As the next from R575 on."""
    tpc_repair_pending: bool | Missing
    """Is a texture processing cluster (TPC) to be repaired?"""


class RowHistogram(Record):
    """Memory banks by how many spare rows they have left (``nvmlDeviceGetRowRemapperHistogram``)."""

    max: int | Missing
    high: int | Missing
    partial: int | Missing
    low: int | Missing
    none: int | Missing


class GpuMemory(Record):
    """Memory of one GPU, in bytes."""

    bdf: str
    total: int | Missing
    """Net of the driver's reserve up to R470, the physical size from R510 on."""
    reserved: int | Missing
    """From R510 on."""
    free: int | Missing
    used: int | Missing
    ecc: bool | Missing
    ecc_pending: bool | Missing
    """The mode after the next reboot."""
    row_histogram: RowHistogram
    """Missing throughout before Ampere and while MIG instances are active."""


class Fabric(Record):
    """A GPU's registration with the fabric manager of an NVSwitch machine (``nvmlGpuFabricInfo_t``)."""

    state: int | Missing
    """0 not supported, 1 not started, 2 in progress, 3 completed."""
    status: int | Missing
    """The ``nvmlReturn_t`` with which it completed."""
    clique_id: int | Missing
    cluster_uuid: str | Missing
    health_mask: int | Missing
    """``NVML_GPU_FABRIC_HEALTH_MASK_*``; from R550 on (``nvmlGpuFabricInfo_v2_t``)."""
    health_summary: int | Missing
    """0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity; from R570 on (``nvmlGpuFabricInfo_v3_t``)."""


class GpuModes(Record):
    """Modes of one GPU."""

    bdf: str
    persistence: bool | Missing
    compute_mode: int | Missing
    """``nvmlComputeMode_t``: 0 default, 1 exclusive thread, 2 prohibited, 3 exclusive process."""
    operation_mode: int | Missing
    """``nvmlGpuOperationMode_t``: 0 all on, 1 compute, 2 low double precision."""
    operation_mode_pending: int | Missing
    mig: bool | Missing
    mig_pending: bool | Missing
    display_mode: bool | Missing
    """Is a display connected?"""
    display_active: bool | Missing
    recovery_action: int | Missing
    """0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset, 5 recover IMEX domain, 6 bus reset,
    7 system reboot."""
    fabric: Fabric | Missing


class GpuPcie(Record):
    """PCI link and BAR1 of one GPU."""

    bdf: str
    link_gen: int | Missing
    """Drops on an idle K80, which is no fault."""
    link_width: int | Missing
    max_link_gen: int | Missing
    """What GPU and slot can do together (``nvmlDeviceGetMaxPcieLinkGeneration``)."""
    max_link_width: int | Missing
    gpu_max_link_gen: int | Missing
    """What the GPU alone can do; from R525 on."""
    bar1_total: int | Missing
    """Bytes, as the next two."""
    bar1_free: int | Missing
    bar1_used: int | Missing


class GpuPower(Record):
    """Power of one GPU, in milliwatts."""

    bdf: str
    usage_mw: int | Missing
    enforced_limit_mw: int | Missing
    """The lowest of all limits that apply."""
    limit_mw: int | Missing
    default_limit_mw: int | Missing
    min_limit_mw: int | Missing
    max_limit_mw: int | Missing


class GpuProcess(Record):
    """One process with a context on a GPU."""

    pid: int
    used_memory: int | Missing
    """Bytes; unsupported where the driver does not account for them (MIG, some virtual machines)."""
    name: str | Missing


class GpuActivity(Record):
    """How busy one GPU is."""

    bdf: str
    gpu_percent: int | Missing
    """Unsupported while MIG is on, as the next."""
    memory_percent: int | Missing
    compute: tuple[GpuProcess, ...] | Missing
    graphics: tuple[GpuProcess, ...] | Missing


class GpuThermal(Record):
    """Temperatures of one GPU, in degrees Celsius."""

    bdf: str
    gpu_c: int | Missing
    memory_c: int | Missing
    """HBM, from V100 on (field 82)."""
    shutdown_c: int | Missing
    slowdown_c: int | Missing
    memory_max_c: int | Missing
    gpu_max_c: int | Missing
    """Highest for normal operation; K80 and P100 have none."""
    margin_c: int | Missing
    """Degrees left to the nearest slowdown (T.Limit); from R570 on."""
    shutdown_tlimit_c: int | Missing
    """The margin at which it shuts down, 0 or negative (field 193); Hopper gives these four in place of degrees."""
    slowdown_tlimit_c: int | Missing
    memory_max_tlimit_c: int | Missing
    gpu_max_tlimit_c: int | Missing
    fan_percent: int | Missing
    """Unsupported on boards that the chassis cools."""
