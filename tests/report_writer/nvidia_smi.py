"""``nvidia-smi --query`` and ``nvidia-smi nvlink`` of a recorded machine, as driver 535 prints them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dgxcheck.facts.ids import NVLINK_SPEED
from dgxcheck.facts.missing import Missing
from dgxcheck.source.protocol import Json, Source

Answer = Json | Missing
CORRUPTED = 14
_YES, _ENABLED, _ACTIVE = ("No", "Yes"), ("Disabled", "Enabled"), ("Not Active", "Active")
_MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
_REASONS = (("Idle", 0x1), ("Applications Clocks Setting", 0x2), ("SW Power Cap", 0x4), ("HW Slowdown", 0x8),
            ("    HW Thermal Slowdown", 0x40), ("    HW Power Brake Slowdown", 0x80), ("Sync Boost", 0x10),
            ("SW Thermal Slowdown", 0x20), ("Display Clock Setting", 0x100))  # fmt: skip


def gpus(source: Source) -> list[str]:
    """bdfs by NVML's index."""
    count = source.nvml("nvmlDeviceGetCount")
    found = [source.nvml("nvmlDeviceGetHandleByIndex", "", n) for n in range(count if isinstance(count, int) else 0)]
    return [bdf for bdf in found if isinstance(bdf, str)]


def query(source: Source) -> str:
    """``nvidia-smi --query``."""
    if failure := _failure(source):
        return failure
    count = source.nvml("nvmlDeviceGetCount")
    handles = [source.nvml("nvmlDeviceGetHandleByIndex", "", n) for n in range(count if isinstance(count, int) else 0)]
    if count == 0:
        return "No devices were found\n"
    if any(isinstance(handle, Missing) for handle in handles):
        held = set(bound(source)) - {handle for handle in handles if isinstance(handle, str)}
        return f"Unable to determine the device handle for GPU{min(held, default='0000:00:00.0')}: Unknown Error\n"
    cuda = source.nvml("nvmlSystemGetCudaDriverVersion")
    rows = ["", "==============NVSMI LOG==============", "", _row(0, "Timestamp", "Mon Nov 23 10:00:00 2026"),
            _row(0, "Driver Version", str(source.nvml("nvmlSystemGetDriverVersion")))]  # fmt: skip
    rows += [_row(0, "CUDA Version", f"{cuda // 1000}.{cuda % 1000 // 10}")] if isinstance(cuda, int) else []
    rows += ["", _row(0, "Attached GPUs", str(len(handles)))]
    warnings: list[str] = []
    for bdf in gpus(source):
        rows += [f"GPU {_long(bdf)}", *_gpu(source, bdf), ""]
        version = source.nvml("nvmlDeviceGetInforomImageVersion", bdf)
        if isinstance(version, Missing) and version.code == CORRUPTED:
            warnings.append(f"WARNING: infoROM is corrupted at gpu {bdf.upper()}")
    return "\n".join([*rows, *warnings]) + "\n"


def _failure(source: Source) -> str:
    """The words of nvidia-smi where the driver cannot be reached, whatever it is asked; empty where it can."""
    init = source.nvml("nvmlInit")
    if not isinstance(init, Missing):
        return ""
    if init.code == 18 or "differ in version" in init.detail:
        return "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 550.144\n"
    return (
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest "
        "NVIDIA driver is installed and running.\n"
    )


def bound(source: Source) -> list[str]:
    """The GPUs to which the kernel module is bound."""
    names = source.names("/sys/bus/pci/devices")
    found = [] if isinstance(names, Missing) else [*names]
    drivers = {bdf: source.link(f"/sys/bus/pci/devices/{bdf}/driver") for bdf in found}
    codes = {bdf: source.text(f"/sys/bus/pci/devices/{bdf}/class") for bdf in found}
    return [bdf for bdf in found if str(drivers[bdf]).endswith("/nvidia") and str(codes[bdf]).startswith("0x03")]


def status(source: Source) -> str:
    """``nvidia-smi nvlink --status``."""

    def rows(bdf: str, link: int, state: Answer) -> list[str]:
        rate = source.nvml("nvmlDeviceGetFieldValues", bdf, link, NVLINK_SPEED)
        shown = f"{(rate if isinstance(rate, int) else 25781) / 1000:g} GB/s" if state == 1 else "<inactive>"
        return [f"Link {link}: {shown}"]

    return _nvlinks(source, rows)


def remote_ends(source: Source) -> str:
    """``nvidia-smi nvlink --remotelinkinfo``."""

    def rows(bdf: str, link: int, state: Answer) -> list[str]:
        end = source.nvml("nvmlDeviceGetNvLinkRemotePciInfo", bdf, link)
        bus_id = end.get("busId") if isinstance(end, dict) else None
        return [f"Link {link}: Remote Device {bus_id}: Link 0"] if isinstance(bus_id, str) and state == 1 else []

    return _nvlinks(source, rows)


def error_counters(source: Source) -> str:
    """``nvidia-smi nvlink --errorcounters``."""

    def rows(bdf: str, link: int, state: Answer) -> list[str]:
        counts = [(name, source.nvml("nvmlDeviceGetNvLinkErrorCounter", bdf, link, number))
                  for number, name in enumerate(("Replay", "Recovery", "CRC"))]  # fmt: skip
        return [f"Link {link}: {name} Errors: {count}" for name, count in counts if isinstance(count, int)]

    return _nvlinks(source, rows)


def _nvlinks(source: Source, of_link: Callable[[str, int, Answer], list[str]]) -> str:
    if failure := _failure(source):
        return failure
    found = []
    for index, bdf in enumerate(gpus(source)):
        states = [(link, source.nvml("nvmlDeviceGetNvLinkState", bdf, link)) for link in range(18)]
        rows = [f"\t {row}" for link, state in states if isinstance(state, int) for row in of_link(bdf, link, state)]
        uuid = source.nvml("nvmlDeviceGetUUID", bdf)
        found += [f"GPU {index}: {source.nvml('nvmlDeviceGetName', bdf)} (UUID: {uuid})", *rows] if rows else []
    return "\n".join(found) + "\n"


def _long(bdf: str) -> str:
    domain, _, rest = bdf.partition(":")
    return f"{domain:0>8}:{rest}".upper()


def _row(depth: int, label: str, value: str) -> str:
    return f"{'    ' * depth + label:<42}: {value}"


def _gpu(source: Source, bdf: str) -> list[str]:
    def ask(function: str, *args: int) -> Any:
        return source.nvml(f"nvmlDeviceGet{function}", bdf, *args)

    rows: list[str] = []

    def field(depth: int, label: str, answer: Any, form: Callable[[Any], str] = str) -> None:
        if isinstance(answer, Missing):
            words = {"lost": "GPU is lost", "unsupported": "N/A"}
            if answer.gap.value in words:
                rows.append(_row(depth, label, words[answer.gap.value]))
        else:
            rows.append(_row(depth, label, form(answer)))

    def pair(label: str, function: str, words: tuple[str, str]) -> None:
        modes = ask(function)
        rows.append(f"    {label}")
        for number, name in enumerate(("Current", "Pending")):
            field(2, name, modes if isinstance(modes, Missing) else modes[number], lambda value: words[value])

    field(1, "Product Name", ask("Name"))
    field(1, "Display Active", ask("DisplayActive"), lambda on: _ENABLED[on])
    field(1, "Persistence Mode", ask("PersistenceMode"), lambda on: _ENABLED[on])
    pair("MIG Mode", "MigMode", _ENABLED)
    field(1, "Serial Number", ask("Serial"))
    field(1, "GPU UUID", ask("UUID"))
    field(1, "Minor Number", ask("MinorNumber"))
    field(1, "VBIOS Version", ask("VbiosVersion"))
    field(1, "MultiGPU Board", ask("MultiGpuBoard"), lambda on: _YES[on])
    field(1, "Board ID", ask("BoardId"), hex)
    rows.append("    Inforom Version")
    field(2, "Image Version", ask("InforomImageVersion"))
    field(2, "ECC Object", ask("InforomVersion", 1))
    rows.append("    GPU Reset Status")
    field(2, "Reset Required", _YES[ask("FieldValues", 230) == 1])
    rows += ["    PCI", _row(2, "Bus Id", _long(bdf)), "        GPU Link Info", "            PCIe Generation"]
    field(4, "Max", ask("MaxPcieLinkGeneration"))
    field(4, "Current", ask("CurrPcieLinkGeneration"))
    rows.append("            Link Width")
    field(4, "Max", ask("MaxPcieLinkWidth"), "{}x".format)
    field(4, "Current", ask("CurrPcieLinkWidth"), "{}x".format)
    field(2, "Replays Since Reset", ask("PcieReplayCounter"))
    field(1, "Performance State", ask("PerformanceState"), "P{}".format)
    reasons = ask("CurrentClocksEventReasons")
    if isinstance(reasons, int):
        rows.append("    Clocks Event Reasons")
        rows += [_row(2, name, _ACTIVE[bool(reasons & bit)]) for name, bit in _REASONS]
    memory = ask("MemoryInfo")
    if isinstance(memory, dict):
        rows.append("    FB Memory Usage")
        for name in ("total", "reserved", "used", "free"):
            if isinstance(memory.get(name), int):
                rows.append(_row(2, name.capitalize(), f"{memory[name] >> 20} MiB"))
    bar1 = ask("BAR1MemoryInfo")
    if isinstance(bar1, dict):
        rows.append("    BAR1 Memory Usage")
        rows += [_row(2, name, f"{bar1[f'bar1{name}'] >> 20} MiB") for name in ("Total", "Used", "Free")]
    field(1, "Compute Mode", ask("ComputeMode"), lambda mode: _MODES[mode])
    pair("ECC Mode", "EccMode", _ENABLED)
    rows.append("    ECC Errors")
    for number, period in enumerate(("Volatile", "Aggregate")):
        rows.append(f"        {period}")
        for kind, name in enumerate(("Single Bit", "Double Bit")):
            rows.append(f"            {name}")
            field(4, "Total", ask("TotalEccErrors", kind, number))
    rows.append("    Retired Pages")
    for cause, name in enumerate(("Single Bit ECC", "Double Bit ECC")):
        field(2, name, ask("RetiredPages", cause), lambda pages: str(len(pages)))
    field(2, "Pending Page Blacklist", ask("RetiredPagesPendingStatus"), lambda on: _YES[on])
    remapped = ask("RemappedRows")
    if isinstance(remapped, Missing):
        field(1, "Remapped Rows", remapped)
    else:
        rows.append("    Remapped Rows")
        rows += [_row(2, "Correctable Error", str(remapped[0])), _row(2, "Uncorrectable Error", str(remapped[1])),
                 _row(2, "Pending", _YES[remapped[2]]),
                 _row(2, "Remapping Failure Occurred", _YES[remapped[3]])]  # fmt: skip
    rows.append("    Temperature")
    field(2, "GPU Current Temp", ask("Temperature", 0), "{} C".format)
    field(2, "GPU Shutdown Temp", ask("TemperatureThreshold", 0), "{} C".format)
    field(2, "GPU Slowdown Temp", ask("TemperatureThreshold", 1), "{} C".format)
    field(2, "Memory Current Temp", ask("FieldValues", 82), "{} C".format)
    rows.append("    GPU Power Readings")

    def watts(milli: int) -> str:
        return f"{milli / 1000:.2f} W"

    field(2, "Power Draw", ask("PowerUsage"), watts)
    field(2, "Current Power Limit", ask("EnforcedPowerLimit"), watts)
    field(2, "Requested Power Limit", ask("PowerManagementLimit"), watts)
    field(2, "Default Power Limit", ask("PowerManagementDefaultLimit"), watts)
    limits = ask("PowerManagementLimitConstraints")
    field(2, "Min Power Limit", limits if isinstance(limits, Missing) else limits[0], watts)
    field(2, "Max Power Limit", limits if isinstance(limits, Missing) else limits[1], watts)
    for label, function in (("Clocks", "ClockInfo"), ("Applications Clocks", "ApplicationsClock"),
                            ("Default Applications Clocks", "DefaultApplicationsClock"),
                            ("Max Clocks", "MaxClockInfo")):  # fmt: skip
        rows.append(f"    {label}")
        for number, name in enumerate(("Graphics", "SM", "Memory", "Video")):
            if label.endswith("Applications Clocks") and number % 2:
                continue
            field(2, name, ask(function, number), "{} MHz".format)
    return rows
