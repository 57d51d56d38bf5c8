"""Made-up NVML facts in the form of a recording."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.nvml.quantities import GROUPS
from dgxcheck.source.protocol import Json
from standin.nvml import STRUCTS

Facts = dict[str, dict[str, Json]]
A, B = "0000:06:00.0", "0001:0a:00.0"
UUID = "00112233-4455-6677-8899-aabbccddeeff"
LOST: Json = {"missing": "lost", "detail": "NVML 15: GPU is lost"}
DENIED: Json = {"missing": "denied", "detail": "NVML 4: no permission"}
BEYOND: Json = {"missing": "unsupported", "detail": "NVML 2: invalid argument"}


def box(**answers: Mapping[str, Json]) -> Facts:
    """Two GPUs and what else is given: function name without nvmlDeviceGet -> arguments -> answer of the first GPU."""
    facts: Facts = {
        "nvml nvmlInit": {"": True},
        "nvml nvmlDeviceGetCount": {"": 2},
        "nvml nvmlDeviceGetHandleByIndex": {"0": A, "1": B},
        "/sys/bus/pci/devices": {"names": [A, B]},
    }
    return facts | {f"nvml nvmlDeviceGet{name} {A}": dict(line) for name, line in answers.items()}


def pci_info(bdf: str) -> Json:
    """``nvmlDeviceGetPciInfo`` of a function, spelt as NVML spells it."""
    domain, bus, _ = bdf.split(":")
    where: dict[str, Json] = {"domain": int(domain, 16), "bus": int(bus, 16), "device": 0}
    ids: dict[str, Json] = {"pciDeviceId": 0x1DB110DE, "pciSubSystemId": 0x121210DE}
    return {"busId": f"0000{bdf}".upper(), "busIdLegacy": bdf.upper(), **where, **ids}


def full_box() -> Facts:
    """Two GPUs that answer every question of the plan, and a third one that is lost."""
    shapes: dict[str, Json] = {
        **{
            name: [1, 0]
            for name in ("EccMode", "GpuOperationMode", "MigMode", "AutoBoostedClocksEnabled", "RepairStatus")
        },
        **{name: [7, 0] for name in ("PowerManagementLimitConstraints", "CudaComputeCapability")},
        **dict.fromkeys(("Name", "UUID", "Serial", "VbiosVersion", "BoardPartNumber"), "a text"),
        **dict.fromkeys(("InforomImageVersion", "InforomVersion"), "G503.0201.00.03"),
        "RemappedRows": [0, 1, 1, 0],
        "MemoryInfo": {"total": 2**34, "reserved": 5, "free": 2**33, "used": 2**33},
        "BAR1MemoryInfo": {"bar1Total": 2**34, "bar1Free": 1, "bar1Used": 2},
        "SramEccErrorStatus": {name: n for n, name in enumerate(STRUCTS["nvmlDeviceGetSramEccErrorStatus"], 1)},
        "PlatformInfo": {"slotNumber": 14, "trayIndex": 4, "hostId": 1, "moduleId": 2},
        "C2cModeInfo": {"isC2cEnabled": 1},
        "GspFirmwareVersion": "580.173.02",
        "RowRemapperHistogram": {"max": 5, "high": 4, "partial": 3, "low": 2, "none": 1},
        "UtilizationRates": {"gpu": 3, "memory": 4},
        "ViolationStatus": {"referenceTime": 2**50, "violationTime": 3},
        "RetiredPages": [{"address": 2**40, "timestamp": 1}, {"address": 2**41, "timestamp": 2}],
        "SupportedMemoryClocks": [877],
        "SupportedGraphicsClocks": [1530, 1522, 1515],
        "ComputeRunningProcesses": [{"pid": 1, "usedGpuMemory": None}, {"pid": 2, "usedGpuMemory": 2**33}],
        "GraphicsRunningProcesses": [],
        "NvLinkVersion": 7,
        "GpuFabricInfo": {
            "state": 3,
            "status": 0,
            "cliqueId": 2,
            "clusterUuid": UUID,
            "healthMask": 0x1AA,
            "healthSummary": 1,
        },
        **dict.fromkeys(("CpuAffinity", "MemoryAffinity"), DENIED),  # how many words depends on who asks
    }
    facts = box() | {"nvml nvmlDeviceGetCount": {"": 3}}
    facts["nvml nvmlDeviceGetHandleByIndex"]["2"] = LOST
    gpus = (A, B)
    subjects = {"system": [""], "process": [""], "pair": [f"{A} {B}"], "ordered pair": [f"{A} {B}", f"{B} {A}"]}
    links = dict.fromkeys(("position", "link", "link up", "link 5"), (0, 1))
    more = {**links, "memory clock": (877,), "process": (1, 2)}
    for call in (call for group in GROUPS.values() for call in group):
        function, args, scope = call.function, call.args, call.scope
        for subject in subjects.get(scope, gpus):
            line = facts.setdefault(f"nvml {function} {subject}".rstrip(), {})
            for before in more.get(scope, (None,)):
                key = " ".join(str(arg) for arg in (before, *args) if arg is not None)
                text = function.startswith("nvmlSystem") and not function.endswith("CudaDriverVersion")
                line[key] = "text" if text else shapes.get(function.removeprefix("nvmlDeviceGet"), 1)
            if function == "nvmlDeviceGetNvLinkState":
                line["2"] = BEYOND
            if function.endswith("PciInfo"):
                line |= {key: pci_info(subject) for key in line}
    return facts
