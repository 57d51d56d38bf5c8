"""What NVML is asked of a machine, and which facts its answers are: the plan of the worker and the table of the probes.

Functions are C names without ``_vN``; which symbol serves is settled in ``workers/nvml/binding.py``. Scopes: ``system``
once, ``gpu`` per GPU, ``position`` per NVLink position (the link is the first argument), ``link`` per position that has
a state, ``link up`` per link that is up, ``link 5`` per one of these of NVLink 5 or newer,
``memory clock`` per supported memory clock, ``process`` per pid on a GPU,
``pair`` per unordered (in NVML's order) and ``ordered pair`` per ordered pair of GPUs. ``nvmlInit``,
``nvmlDeviceGetCount`` and ``nvmlDeviceGetHandleByIndex`` always come first, in no group.
"""

from __future__ import annotations

from functools import partial
from itertools import product

from dgxcheck.facts.ids import (
    ADDRESSING_MODES,
    MEMORY_TEMPERATURE,
    NVLINK5_BER,
    NVLINK5_ERRORS,
    NVLINK_SPEED,
    RECOVERY_ACTION,
    THROTTLE_TIMES,
    TLIMITS,
)
from dgxcheck.facts.record import Record

U64 = 2**64 - 1


class Quantity(Record, kw_only=False):
    """One NVML function with its arguments, asked once per subject of its scope, and the facts that it gives."""

    function: str
    args: tuple[int, ...] = ()
    scope: str = "gpu"
    facts: tuple[str, ...] = ()
    """Fields of the group's record, ``current.graphics`` for those of a record in it; () for what a probe reads by
    itself. More than one without ``members``: the outputs of the function, in its order."""
    members: tuple[str, ...] = ()
    """Of an answer that is a struct: NVML's names of the fields that the facts are."""
    form: str = "number"
    """``number``, ``text`` or ``flag`` (``nvmlEnableState_t``)."""
    low: int = 0
    high: int = U64


def _ask(function: str, facts: str = "", *args: int, members: str = "", form: str = "number", low: int = 0,
         high: int = U64, scope: str = "gpu") -> Quantity:  # fmt: skip
    return Quantity(f"nvml{function}", args, scope, tuple(facts.split()), tuple(members.split()), form, low, high)


_text, _flag = partial(_ask, form="text"), partial(_ask, form="flag")
_celsius = partial(_ask, low=-273, high=1000)
"""Degrees or a difference of degrees; a negative one that was read as unsigned is out of range."""


CLOCK_TYPES = ("graphics", "sm", "memory", "video")  # nvmlClockType_t
ERROR_TYPES = ("corrected", "uncorrected")  # nvmlMemoryErrorType_t
COUNTER_TYPES = ("volatile", "aggregate")  # nvmlEccCounterType_t
LOCATIONS = (
    "l1_cache", "l2_cache", "device_memory", "register_file", "texture_memory", "texture_shared", "cbu", "sram",
)  # fmt: skip
"""``nvmlMemoryLocation_t``"""
THRESHOLDS = ("shutdown", "slowdown", "memory_max", "gpu_max")  # nvmlTemperatureThresholds_t
POLICIES = ("power", "thermal", "sync_boost", "board_limit", "low_utilization", "reliability")
"""``nvmlPerfPolicyType_t`` without the totals"""
LINK_ERRORS = ("replay", "recovery", "crc_flit", "crc_data", "ecc_data")  # nvmlNvLinkErrorCounter_t
LINK_CAPABILITIES = ("p2p", "sysmem_access", "p2p_atomics", "sysmem_atomics", "sli_bridge", "valid")
_TWO_CLOCKS = (
    ("ApplicationsClock", "application"), ("DefaultApplicationsClock", "default_application"),
    ("MaxCustomerBoostClock", "max_customer_boost"),
)  # fmt: skip
"""What NVML has of graphics and memory alone."""

GROUPS: dict[str, tuple[Quantity, ...]] = {
    "system": (
        _ask("SystemGetDriverVersion", scope="system"),
        _ask("SystemGetNVMLVersion", scope="system"),
        _ask("SystemGetCudaDriverVersion", scope="system"),
    ),
    "identity": (
        _text("DeviceGetName", "name"), _text("DeviceGetUUID", "uuid"), _text("DeviceGetSerial", "serial"),
        _ask("DeviceGetMinorNumber", "minor"), _text("DeviceGetVbiosVersion", "vbios"), _ask("DeviceGetNumaNodeId"),
    ),
    "nvlink": (
        _ask("DeviceGetNvLinkState", scope="position"), _ask("DeviceGetNvLinkVersion", scope="link up"),
        _ask("DeviceGetNvLinkRemotePciInfo", scope="link up"), _ask("DeviceGetNvLinkRemoteDeviceType", scope="link up"),
    ),
    "ancestor": (_ask("DeviceGetTopologyCommonAncestor", scope="pair"),),
    # read, write, nvlink, atomics, prop
    "p2p": tuple(_ask("DeviceGetP2PStatus", "", index, scope="ordered pair") for index in range(5)),
    "board": (
        _ask("DeviceGetPciInfo", "pci_device_id pci_subsystem_id", members="pciDeviceId pciSubSystemId"),
        _ask("DeviceGetBrand", "brand"), _ask("DeviceGetArchitecture"), _ask("DeviceGetCudaComputeCapability"),
        _ask("DeviceGetBoardId", "board_id"), _flag("DeviceGetMultiGpuBoard", "multi_gpu"),
        _text("DeviceGetBoardPartNumber", "part_number"), _text("DeviceGetInforomImageVersion", "inforom_image"),
        *(_text("DeviceGetInforomVersion", f"inforom_{part}", n) for n, part in enumerate(("oem", "ecc", "power"))),
        _flag("DeviceValidateInforom", "inforom_valid"), _text("DeviceGetGspFirmwareVersion", "gsp_firmware"),
        _ask("DeviceGetModuleId", "module_id", high=255),
        _ask("DeviceGetPlatformInfo", "chassis_slot tray", members="slotNumber trayIndex"),
        _flag("DeviceGetC2cModeInfo", "c2c", members="isC2cEnabled"),
        _ask("DeviceGetAddressingMode", "addressing_mode", high=len(ADDRESSING_MODES) - 1),
        _ask("DeviceGetVirtualizationMode", "virtualization", high=4),
    ),
    "pcie": (
        _ask("DeviceGetCurrPcieLinkGeneration", "link_gen"), _ask("DeviceGetCurrPcieLinkWidth", "link_width"),
        _ask("DeviceGetMaxPcieLinkGeneration", "max_link_gen"), _ask("DeviceGetMaxPcieLinkWidth", "max_link_width"),
        _ask("DeviceGetGpuMaxPcieLinkGeneration", "gpu_max_link_gen"),
        _ask("DeviceGetBAR1MemoryInfo", "bar1_total bar1_free bar1_used", members="bar1Total bar1Free bar1Used"),
    ),
    "memory": (
        _ask("DeviceGetMemoryInfo", "total reserved free used", members="total reserved free used"),
        _flag("DeviceGetEccMode", "ecc ecc_pending"),
        _ask(
            "DeviceGetRowRemapperHistogram",
            "row_histogram.max row_histogram.high row_histogram.partial row_histogram.low row_histogram.none",
            members="max high partial low none",
        ),
    ),
    "clocks": (
        *(_ask("DeviceGetClockInfo", f"current.{clock}", n) for n, clock in enumerate(CLOCK_TYPES)),
        *(_ask("DeviceGetMaxClockInfo", f"max.{clock}", n) for n, clock in enumerate(CLOCK_TYPES)),
        *(_ask(f"DeviceGet{what}", f"{fact}.{CLOCK_TYPES[n]}", n) for (what, fact), n in product(_TWO_CLOCKS, (0, 2))),
        _ask("DeviceGetSupportedMemoryClocks"),
        _ask("DeviceGetSupportedGraphicsClocks", scope="memory clock"),
        _flag("DeviceGetAutoBoostedClocksEnabled", "auto_boost auto_boost_default"),
        _ask("DeviceGetCurrentClocksEventReasons"),
        _ask("DeviceGetPerformanceState"),
    ),
    "power": (
        _ask("DeviceGetPowerUsage", "usage_mw"), _ask("DeviceGetEnforcedPowerLimit", "enforced_limit_mw"),
        _ask("DeviceGetPowerManagementLimit", "limit_mw"),
        _ask("DeviceGetPowerManagementDefaultLimit", "default_limit_mw"),
        _ask("DeviceGetPowerManagementLimitConstraints", "min_limit_mw max_limit_mw"),
    ),
    "thermal": (
        _celsius("DeviceGetTemperature", "gpu_c", 0),
        *(_celsius("DeviceGetTemperatureThreshold", f"{name}_c", n) for n, name in enumerate(THRESHOLDS)),
        _celsius("DeviceGetMarginTemperature", "margin_c"),
        _celsius("DeviceGetFieldValues", "memory_c", MEMORY_TEMPERATURE),
        *(_celsius("DeviceGetFieldValues", f"{name}_tlimit_c", TLIMITS[n]) for n, name in enumerate(THRESHOLDS)),
        _ask("DeviceGetFanSpeed", "fan_percent", high=1000),
    ),
    "modes": (
        _flag("DeviceGetPersistenceMode", "persistence"), _ask("DeviceGetComputeMode", "compute_mode"),
        _ask("DeviceGetGpuOperationMode", "operation_mode operation_mode_pending"),
        _flag("DeviceGetMigMode", "mig mig_pending"), _flag("DeviceGetDisplayMode", "display_mode"),
        _flag("DeviceGetDisplayActive", "display_active"),
        _ask("DeviceGetFieldValues", "recovery_action", RECOVERY_ACTION),
    ),
    "fabric": (_ask("DeviceGetGpuFabricInfo"),),
    "activity": (
        _ask("DeviceGetUtilizationRates", "gpu_percent memory_percent", members="gpu memory"),
        _ask("DeviceGetComputeRunningProcesses"), _ask("DeviceGetGraphicsRunningProcesses"),
        _ask("SystemGetProcessName", scope="process"),
    ),
    "affinity": (_ask("DeviceGetCpuAffinity"), _ask("DeviceGetMemoryAffinity", "", 0)),
    "nvlink capability": tuple(
        _flag("DeviceGetNvLinkCapability", name, n, scope="link") for n, name in enumerate(LINK_CAPABILITIES)
    ),
    "ecc": (
        *(
            _ask("DeviceGetTotalEccErrors", f"{counter}_{error}.total", e, c)
            for (e, error), (c, counter) in product(enumerate(ERROR_TYPES), enumerate(COUNTER_TYPES))
        ),
        *(
            _ask("DeviceGetMemoryErrorCounter", f"{counter}_{error}.{location}", e, c, n)
            for (e, error), (c, counter) in product(enumerate(ERROR_TYPES), enumerate(COUNTER_TYPES))
            for n, location in enumerate(LOCATIONS)
        ),
        # multiple single-bit errors, double-bit error
        *(_ask("DeviceGetRetiredPages", "", cause) for cause in range(2)),
        _flag("DeviceGetRetiredPagesPendingStatus", "retirement_pending"),
        _ask("DeviceGetRemappedRows"),
        _flag("DeviceGetSramEccErrorStatus", "sram_exceeded", members="bThresholdExceeded"),
        _ask(
            "DeviceGetSramEccErrorStatus",
            "sram.parity sram.secded sram.l2 sram.sm sram.pcie sram.mcu sram.other",
            members="aggregateUncParity aggregateUncSecDed aggregateUncBucketL2 aggregateUncBucketSm"
            " aggregateUncBucketPcie aggregateUncBucketMcu aggregateUncBucketOther",
        ),
        _flag("DeviceGetRepairStatus", "channel_repair_pending tpc_repair_pending"),
        _flag("DeviceGetUnrepairableMemoryFlag", "unrepairable"),
    ),
    "counters": (
        _ask("DeviceGetPcieReplayCounter", "pcie_replays"),
        _ask("DeviceGetViolationStatus", "power_ns clock_us", 0, members="violationTime referenceTime"),
        *(
            _ask("DeviceGetViolationStatus", f"{policy}_ns", n, members="violationTime")
            for n, policy in enumerate(POLICIES) if n
        ),
        *(_ask("DeviceGetFieldValues", name, field) for name, field in THROTTLE_TIMES.items()),
        _ask("DeviceGetTotalEnergyConsumption", "energy_mj"),
        _ask("DeviceGetCurrentClocksEventReasons", "reasons_mask"),
    ),
    "nvlink rate": (_ask("DeviceGetFieldValues", "speed_mbs", NVLINK_SPEED, scope="link up"),),
    "nvlink errors": (
        *(_ask("DeviceGetNvLinkErrorCounter", name, n, scope="link") for n, name in enumerate(LINK_ERRORS)),
        *(_ask("DeviceGetFieldValues", name, n, scope="link 5") for name, n in NVLINK5_ERRORS.items()),
        *(_ask("DeviceGetFieldValues", name, n, scope="link 5", high=0xFFF) for name, n in NVLINK5_BER.items()),
    ),
}  # fmt: skip
