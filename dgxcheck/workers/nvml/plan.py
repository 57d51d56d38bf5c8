"""What the NVML worker is asked, by group; a command names the groups it needs.

A call is (function, arguments, scope). Functions are C names without ``_vN``; which symbol serves is settled in
``nvml_calls``. Scopes: ``system`` once, ``gpu`` per GPU, ``position`` per NVLink position (the link is the first
argument), ``link`` per position that has a state, ``link up`` per link that is up, ``memory clock`` per supported
memory clock, ``process`` per pid on a GPU, ``pair`` per unordered (in NVML's order) and ``ordered pair`` per ordered
pair of GPUs. ``nvmlInit``, ``nvmlDeviceGetCount`` and ``nvmlDeviceGetHandleByIndex`` always come first, in no group.
"""

from __future__ import annotations

from itertools import product

from dgxcheck.facts.ids import MEMORY_TEMPERATURE, RECOVERY_ACTION, TLIMITS
from dgxcheck.facts.record import Record


class Call(Record, kw_only=False):
    """One NVML function with its arguments, asked once per subject of its scope."""

    function: str
    args: tuple[int, ...] = ()
    scope: str = "gpu"


def _each(function: str, *ranges: range | tuple[int, ...], scope: str = "gpu") -> tuple[Call, ...]:
    return tuple(Call(function, args, scope) for args in product(*ranges))


CLOCKS = range(4)  # graphics, SM, memory, video
ECC_TYPES = range(2)  # corrected, uncorrected
ECC_COUNTERS = range(2)  # volatile, aggregate
ECC_LOCATIONS = range(8)  # L1, L2, device memory, register file, texture memory, texture shared, CBU, SRAM

GROUPS: dict[str, tuple[Call, ...]] = {
    "system": (
        Call("nvmlSystemGetDriverVersion", scope="system"),
        Call("nvmlSystemGetNVMLVersion", scope="system"),
        Call("nvmlSystemGetCudaDriverVersion", scope="system"),
    ),
    "identity": (
        Call("nvmlDeviceGetName"),
        Call("nvmlDeviceGetUUID"),
        Call("nvmlDeviceGetSerial"),
        Call("nvmlDeviceGetMinorNumber"),
        Call("nvmlDeviceGetVbiosVersion"),
        Call("nvmlDeviceGetNumaNodeId"),
    ),
    "nvlink": (
        Call("nvmlDeviceGetNvLinkState", scope="position"),
        Call("nvmlDeviceGetNvLinkVersion", scope="link up"),
        Call("nvmlDeviceGetNvLinkRemotePciInfo", scope="link up"),
        Call("nvmlDeviceGetNvLinkRemoteDeviceType", scope="link up"),
    ),
    "ancestor": (Call("nvmlDeviceGetTopologyCommonAncestor", scope="pair"),),
    "p2p": _each("nvmlDeviceGetP2PStatus", range(5), scope="ordered pair"),  # read, write, nvlink, atomics, prop
    "board": (
        Call("nvmlDeviceGetPciInfo"),
        Call("nvmlDeviceGetBrand"),
        Call("nvmlDeviceGetArchitecture"),
        Call("nvmlDeviceGetCudaComputeCapability"),
        Call("nvmlDeviceGetBoardId"),
        Call("nvmlDeviceGetMultiGpuBoard"),
        Call("nvmlDeviceGetBoardPartNumber"),
        Call("nvmlDeviceGetInforomImageVersion"),
        *_each("nvmlDeviceGetInforomVersion", range(3)),  # OEM, ECC, power
    ),
    "pcie": (
        Call("nvmlDeviceGetCurrPcieLinkGeneration"),
        Call("nvmlDeviceGetCurrPcieLinkWidth"),
        Call("nvmlDeviceGetMaxPcieLinkGeneration"),
        Call("nvmlDeviceGetMaxPcieLinkWidth"),
        Call("nvmlDeviceGetGpuMaxPcieLinkGeneration"),
        Call("nvmlDeviceGetBAR1MemoryInfo"),
    ),
    "memory": (
        Call("nvmlDeviceGetMemoryInfo"),
        Call("nvmlDeviceGetEccMode"),
        Call("nvmlDeviceGetRowRemapperHistogram"),
    ),
    "clocks": (
        *_each("nvmlDeviceGetClockInfo", CLOCKS),
        *_each("nvmlDeviceGetMaxClockInfo", CLOCKS),
        *_each("nvmlDeviceGetApplicationsClock", (0, 2)),
        *_each("nvmlDeviceGetDefaultApplicationsClock", (0, 2)),
        *_each("nvmlDeviceGetMaxCustomerBoostClock", (0, 2)),
        Call("nvmlDeviceGetSupportedMemoryClocks"),
        Call("nvmlDeviceGetSupportedGraphicsClocks", scope="memory clock"),
        Call("nvmlDeviceGetAutoBoostedClocksEnabled"),
        Call("nvmlDeviceGetCurrentClocksEventReasons"),
        Call("nvmlDeviceGetPerformanceState"),
    ),
    "power": (
        Call("nvmlDeviceGetPowerUsage"),
        Call("nvmlDeviceGetEnforcedPowerLimit"),
        Call("nvmlDeviceGetPowerManagementLimit"),
        Call("nvmlDeviceGetPowerManagementDefaultLimit"),
        Call("nvmlDeviceGetPowerManagementLimitConstraints"),
    ),
    "thermal": (
        Call("nvmlDeviceGetTemperature", (0,)),
        *_each("nvmlDeviceGetTemperatureThreshold", range(4)),  # shutdown, slowdown, memory max, GPU max
        Call("nvmlDeviceGetMarginTemperature"),
        *_each("nvmlDeviceGetFieldValues", (MEMORY_TEMPERATURE, *TLIMITS)),
        Call("nvmlDeviceGetFanSpeed"),
    ),
    "modes": (
        Call("nvmlDeviceGetPersistenceMode"),
        Call("nvmlDeviceGetComputeMode"),
        Call("nvmlDeviceGetGpuOperationMode"),
        Call("nvmlDeviceGetMigMode"),
        Call("nvmlDeviceGetDisplayMode"),
        Call("nvmlDeviceGetDisplayActive"),
        Call("nvmlDeviceGetFieldValues", (RECOVERY_ACTION,)),
        Call("nvmlDeviceGetGpuFabricInfo"),
    ),
    "activity": (
        Call("nvmlDeviceGetUtilizationRates"),
        Call("nvmlDeviceGetComputeRunningProcesses"),
        Call("nvmlDeviceGetGraphicsRunningProcesses"),
        Call("nvmlSystemGetProcessName", scope="process"),
    ),
    "affinity": (
        Call("nvmlDeviceGetCpuAffinity"),
        Call("nvmlDeviceGetMemoryAffinity", (0,)),
    ),
    "nvlink capability": _each("nvmlDeviceGetNvLinkCapability", range(6), scope="link"),
    "counters": (
        *_each("nvmlDeviceGetTotalEccErrors", ECC_TYPES, ECC_COUNTERS),
        *_each("nvmlDeviceGetMemoryErrorCounter", ECC_TYPES, ECC_COUNTERS, ECC_LOCATIONS),
        *_each("nvmlDeviceGetRetiredPages", range(2)),  # multiple single-bit errors, double-bit error
        Call("nvmlDeviceGetRetiredPagesPendingStatus"),
        Call("nvmlDeviceGetRemappedRows"),
        Call("nvmlDeviceGetPcieReplayCounter"),
        *_each("nvmlDeviceGetViolationStatus", range(6)),  # nvmlPerfPolicyType_t without the totals
        Call("nvmlDeviceGetCurrentClocksEventReasons"),
        *_each("nvmlDeviceGetNvLinkErrorCounter", range(5), scope="link"),
    ),
}

TOPOLOGY = ("system", "identity", "nvlink", "ancestor")
IDENTITY = ("system", "identity")
HEALTH = tuple(group for group in GROUPS if group not in ("affinity", "nvlink capability"))
COUNTERS = ("nvlink", "counters")
EVERYTHING = tuple(GROUPS)
