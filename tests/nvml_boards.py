"""NVML answers of a K80 half, a V100-SXM2-16GB and an A100-SXM4-40GB, as ``nvidia-smi -q`` showed them.

K80: driver 430.26, a virtual machine, under load. V100: 550.127, idle. A100: 570.148, idle.
"""

from __future__ import annotations

from collections.abc import Mapping

from fake_nvml_source import MIB

from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Json

Board = dict[str, "Json | Missing"]


def _each(function: str, values: Mapping[str, Json]) -> Board:
    return {f"{function} {args}": value for args, value in values.items()}


def _clocks(function: str, *mhz: int) -> Board:
    """Graphics, SM, memory, video; or graphics and memory."""
    names = ("0", "1", "2", "3") if len(mhz) == 4 else ("0", "2")
    return _each(function, dict(zip(names, mhz, strict=True)))


def _ecc(function: str, error: int, period: int, counts: dict[int, int]) -> Board:
    return {f"{function} {error} {period} {location}": count for location, count in counts.items()}


K80: Board = {
    "nvmlSystemGetDriverVersion": "430.26",
    "nvmlDeviceGetName": "Tesla K80",
    "nvmlDeviceGetUUID": "GPU-00000000-0000-4000-8000-000000000001",
    "nvmlDeviceGetSerial": "0320000000001",
    "nvmlDeviceGetMinorNumber": 1,
    "nvmlDeviceGetVbiosVersion": "80.21.1F.00.05",
    "nvmlDeviceGetPciInfo": {"busId": "00001580:00:00.0", "pciDeviceId": 0x102D10DE, "pciSubSystemId": 0x106C10DE},
    "nvmlDeviceGetBrand": 2,
    "nvmlDeviceGetCudaComputeCapability": [3, 7],
    "nvmlDeviceGetBoardId": 0x15800000,
    "nvmlDeviceGetMultiGpuBoard": 0,
    "nvmlDeviceGetBoardPartNumber": "900-22080-0300-000",
    "nvmlDeviceGetInforomImageVersion": "2080.0200.00.04",
    **_each("nvmlDeviceGetInforomVersion", {"0": "1.1", "1": "3.0"}),
    "nvmlDeviceGetCurrPcieLinkGeneration": 3,
    "nvmlDeviceGetCurrPcieLinkWidth": 16,
    "nvmlDeviceGetMaxPcieLinkGeneration": 3,
    "nvmlDeviceGetMaxPcieLinkWidth": 16,
    "nvmlDeviceGetBAR1MemoryInfo": {"bar1Total": 16384 * MIB, "bar1Free": 16382 * MIB, "bar1Used": 2 * MIB},
    "nvmlDeviceGetMemoryInfo": {"total": 11441 * MIB, "free": 10854 * MIB, "used": 587 * MIB},
    "nvmlDeviceGetEccMode": [1, 1],
    **_each("nvmlDeviceGetTotalEccErrors", {"0 0": 0, "1 0": 0, "0 1": 7, "1 1": 7}),
    **_ecc("nvmlDeviceGetMemoryErrorCounter", 0, 1, {0: 0, 1: 0, 2: 7, 3: 0, 4: 0}),
    **_ecc("nvmlDeviceGetMemoryErrorCounter", 1, 1, {0: 0, 1: 0, 2: 7, 3: 0, 4: 0}),
    **_each("nvmlDeviceGetRetiredPages", {"0": [{"address": 0xB48D7}], "1": [{"address": 0x2CE8A4}]}),
    "nvmlDeviceGetRetiredPagesPendingStatus": 0,
    "nvmlDeviceGetPcieReplayCounter": 0,
    **_clocks("nvmlDeviceGetClockInfo", 810, 810, 2505, 540),
    **_clocks("nvmlDeviceGetMaxClockInfo", 875, 875, 2505, 540),
    **_clocks("nvmlDeviceGetApplicationsClock", 562, 2505),
    **_clocks("nvmlDeviceGetDefaultApplicationsClock", 562, 2505),
    "nvmlDeviceGetSupportedMemoryClocks": [2505, 324],
    **_each("nvmlDeviceGetSupportedGraphicsClocks", {"2505": [875, 862, 562], "324": [324]}),
    "nvmlDeviceGetAutoBoostedClocksEnabled": [1, 1],
    "nvmlDeviceGetCurrentClocksEventReasons": 0x2,
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetPowerUsage": 135720,
    "nvmlDeviceGetEnforcedPowerLimit": 149000,
    "nvmlDeviceGetPowerManagementLimit": 149000,
    "nvmlDeviceGetPowerManagementDefaultLimit": 149000,
    "nvmlDeviceGetPowerManagementLimitConstraints": [100000, 175000],
    "nvmlDeviceGetTemperature 0": 64,
    **_each("nvmlDeviceGetTemperatureThreshold", {"0": 110, "1": 88}),
    "nvmlDeviceGetPersistenceMode": 0,
    "nvmlDeviceGetComputeMode": 0,
    "nvmlDeviceGetDisplayMode": 0,
    "nvmlDeviceGetDisplayActive": 0,
    "nvmlDeviceGetUtilizationRates": {"gpu": 99, "memory": 29},
    "nvmlDeviceGetComputeRunningProcesses": [
        {"pid": 4242, "usedGpuMemory": 576 * MIB},
        {"pid": 7, "usedGpuMemory": None},
    ],
    "nvmlDeviceGetGraphicsRunningProcesses": [],
    "nvmlSystemGetProcessName 4242": "/usr/bin/python3",
}

V100: Board = {
    "nvmlSystemGetDriverVersion": "550.127.05",
    "nvmlSystemGetNVMLVersion": "12.550.127.05",
    "nvmlSystemGetCudaDriverVersion": 12040,
    "nvmlDeviceGetName": "Tesla V100-SXM2-16GB",
    "nvmlDeviceGetMinorNumber": 0,
    "nvmlDeviceGetNumaNodeId": -1,
    "nvmlDeviceGetPciInfo": {"busId": "00000000:06:00.0", "pciDeviceId": 0x1DB110DE, "pciSubSystemId": 0x121210DE},
    "nvmlDeviceGetArchitecture": 5,
    "nvmlDeviceGetMemoryInfo": {"total": 16384 * MIB, "reserved": 240 * MIB, "free": 16145 * MIB, "used": MIB},
    "nvmlDeviceGetEccMode": [1, 1],
    **_each("nvmlDeviceGetTotalEccErrors", {"0 0": 0, "1 0": 0, "0 1": 0, "1 1": 0}),
    **_ecc("nvmlDeviceGetMemoryErrorCounter", 0, 0, {0: 0, 1: 0, 2: 0, 3: 0}),
    **_ecc("nvmlDeviceGetMemoryErrorCounter", 1, 0, {0: 0, 1: 0, 2: 0, 3: 0, 6: 0}),
    **_each("nvmlDeviceGetRetiredPages", {"0": [], "1": [{"address": 0x1D5, "timestamp": 1546300800}]}),
    "nvmlDeviceGetRetiredPagesPendingStatus": 0,
    **_clocks("nvmlDeviceGetClockInfo", 135, 135, 877, 555),
    **_clocks("nvmlDeviceGetMaxClockInfo", 1530, 1530, 877, 1372),
    **_clocks("nvmlDeviceGetDefaultApplicationsClock", 1312, 877),
    "nvmlDeviceGetMaxCustomerBoostClock 0": 1530,
    "nvmlDeviceGetCurrentClocksEventReasons": 0x1,
    "nvmlDeviceGetPerformanceState": 0,
    "nvmlDeviceGetPowerUsage": 44500,
    "nvmlDeviceGetPowerManagementLimitConstraints": [150000, 300000],
    "nvmlDeviceGetTemperature 0": 37,
    **_each("nvmlDeviceGetTemperatureThreshold", {"0": 90, "1": 87, "2": 85, "3": 83}),
    "nvmlDeviceGetFieldValues 82": 33,
    "nvmlDeviceGetPersistenceMode": 1,
    "nvmlDeviceGetCpuAffinity": [0x0FFFFF00000FFFFF, 0],
    "nvmlDeviceGetMemoryAffinity 0": [1],
    **_each("nvmlDeviceGetNvLinkState", {str(link): 1 for link in range(5)} | {"5": 0}),
    **_each("nvmlDeviceGetNvLinkVersion", {str(link): 2 for link in range(5)}),
    **_each("nvmlDeviceGetNvLinkRemotePciInfo", {"0": {"busId": "00000000:07:00.0", "busIdLegacy": "0000:07:00.0"}}),
    **_each("nvmlDeviceGetNvLinkRemotePciInfo", {"1": {"busId": "\x00", "busIdLegacy": "0000:0A:00.0"}}),
    **_each("nvmlDeviceGetNvLinkRemotePciInfo", {"2": {"busId": "00000000:00:00.0", "busIdLegacy": "0000:00:00.0"}}),
    **_each("nvmlDeviceGetNvLinkRemotePciInfo", {"3": {"busId": "", "busIdLegacy": ""}}),
    **_each("nvmlDeviceGetNvLinkRemoteDeviceType", {"0": 0}),
    **_each("nvmlDeviceGetNvLinkErrorCounter", {f"0 {counter}": counter for counter in range(4)}),
    **_each("nvmlDeviceGetNvLinkCapability", {f"0 {capability}": 1 for capability in range(4)} | {"0 4": 0, "0 5": 1}),
    "nvmlDeviceGetTopologyCommonAncestor": 10,
    **_each("nvmlDeviceGetP2PStatus", {"0": 0, "1": 0, "2": 0, "3": 4, "4": 5}),
    **_each("nvmlDeviceGetViolationStatus", {"0": {"referenceTime": 1700000000000000, "violationTime": 35000000}}),
    "nvmlDeviceGetPcieReplayCounter": 2,
}

A100: Board = {
    "nvmlDeviceGetName": "NVIDIA A100-SXM4-40GB",
    "nvmlDeviceGetArchitecture": 7,
    "nvmlDeviceGetMemoryInfo": {"total": 40960 * MIB, "reserved": 518 * MIB, "free": 40443 * MIB, "used": 0},
    "nvmlDeviceGetRowRemapperHistogram": {"max": 640, "high": 0, "partial": 0, "low": 0, "none": 0},
    "nvmlDeviceGetRemappedRows": [0, 0, 0, 0],
    **_ecc("nvmlDeviceGetMemoryErrorCounter", 1, 1, {2: 0, 7: 0}),
    "nvmlDeviceGetMigMode": [0, 0],
    "nvmlDeviceGetFieldValues 230": 0,
    **_each("nvmlDeviceGetTemperatureThreshold", {"0": 92, "1": 89, "2": 95, "3": 85}),
    **_each("nvmlDeviceGetNvLinkState", {str(link): 1 for link in range(12)}),
    **_each("nvmlDeviceGetNvLinkVersion", {str(link): 4 for link in range(12)}),
    **_each("nvmlDeviceGetNvLinkRemoteDeviceType", {str(link): 2 for link in range(12)}),
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": 4,
}
