"""A second reader of ``nvidia-smi -q`` and of its table, written for the tests from the printed labels alone.

It takes whole outputs of one tool and nothing else, and shares no line with dgxcheck's readers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from dgxcheck.facts.missing import Json

Read = Callable[[str], Json]
Rows = dict[str, str]
"""Values by path: the labels from the outermost group on, joined by `` > ``."""
_WORDS = {"Enabled": 1, "Disabled": 0, "Yes": 1, "No": 0, "Active": 1, "Not Active": 0, "On": 1, "Off": 0}
_MODES = {"Default": 0, "Prohibited": 2, "Exclusive_Process": 3, "E. Process": 3}
_NOTHING = ("N/A", "Not Supported", "Function Not Found", "Requested functionality has been deprecated")


def _whole(text: str) -> int:
    return int(text.split()[0].rstrip("xCWPMiBHz%"))


def _word(text: str) -> int:
    return _WORDS[text]


def _same(text: str) -> str:
    return text


def _milliwatts(text: str) -> int:
    return round(float(text.split()[0].rstrip("W")) * 1000)


def _retired(text: str) -> Json:
    return [{"address": 0}] * int(text)


_CLOCKS = {"Graphics": 0, "SM": 1, "Memory": 2, "Video": 3}
SINGLE: tuple[tuple[str, str, Read], ...] = (
    ("Product Name", "Name", _same), ("Serial Number", "Serial", _same), ("GPU UUID", "UUID", _same),
    ("Minor Number", "MinorNumber", _whole), ("VBIOS Version", "VbiosVersion", _same),
    ("Inforom Version > Image Version", "InforomImageVersion", _same),
    ("Inforom Version > OEM Object", "InforomVersion 0", _same),
    ("Inforom Version > ECC Object", "InforomVersion 1", _same),
    ("Board ID", "BoardId", lambda text: int(text, 16)), ("MultiGPU Board", "MultiGpuBoard", _word),
    ("Persistence Mode", "PersistenceMode", _word), ("Display Mode", "DisplayMode", _word),
    ("Display Active", "DisplayActive", _word), ("Compute Mode", "ComputeMode", _MODES.__getitem__),
    ("Performance State", "PerformanceState", lambda text: int(text[1:])),
    ("PCI > Replays Since Reset", "PcieReplayCounter", _whole),
    ("PCI > Replays since reset", "PcieReplayCounter", _whole),
    ("PCI > GPU Link Info > PCIe Generation > Max", "MaxPcieLinkGeneration", _whole),
    ("PCI > GPU Link Info > PCIe Generation > Current", "CurrPcieLinkGeneration", _whole),
    ("PCI > GPU Link Info > Link Width > Max", "MaxPcieLinkWidth", _whole),
    ("PCI > GPU Link Info > Link Width > Current", "CurrPcieLinkWidth", _whole),
    ("Board Part Number", "BoardPartNumber", _same), ("Fan Speed", "FanSpeed", _whole),
    ("Temperature > GPU Current Temp", "Temperature 0", _whole),
    ("Temperature > GPU Shutdown Temp", "TemperatureThreshold 0", _whole),
    ("Temperature > GPU Slowdown Temp", "TemperatureThreshold 1", _whole),
    ("Temperature > Memory Max Operating Temp", "TemperatureThreshold 2", _whole),
    ("Temperature > GPU Max Operating Temp", "TemperatureThreshold 3", _whole),
    ("Temperature > Memory Current Temp", "FieldValues 82", _whole),
    ("Temperature > GPU T.Limit Temp", "MarginTemperature", _whole),
    ("Temperature > GPU Shutdown T.Limit Temp", "FieldValues 193", _whole),
    ("Temperature > GPU Slowdown T.Limit Temp", "FieldValues 194", _whole),
    ("GSP Firmware Version", "GspFirmwareVersion", _same), ("Platform Info > Module Id", "ModuleId", _whole),
    ("Addressing Mode", "AddressingMode", {"None": 0, "HMM": 1, "ATS": 2}.__getitem__),
    *((f"GPU Virtualization Mode > Virtualization {word}ode", "VirtualizationMode",
       {"None": 0, "Pass-Through": 1, "VGPU": 2, "Host VGPU": 3, "Host VSGA": 4}.__getitem__) for word in "Mm"),
    ("GPU C2C Mode", "C2cModeInfo", lambda text: {"isC2cEnabled": _WORDS[text]}),
    ("ECC Errors > Unrepairable Memory", "UnrepairableMemoryFlag", _word),
    *((f"Clocks Event Reasons Counters > {name}", f"FieldValues {field}", lambda text: 1000 * _whole(text))
      for name, field in (("SW Thermal Slowdown", 269), ("HW Thermal Slowdown", 270), ("HW Power Braking", 271))),
    ("GPU Recovery Action", "FieldValues 230", {"None": 0, "Reset": 1, "Reboot": 2}.__getitem__),
    ("Retired Pages > Single Bit ECC", "RetiredPages 0", _retired),
    ("Retired Pages > Double Bit ECC", "RetiredPages 1", _retired),
    ("Retired Pages > Pending", "RetiredPagesPendingStatus", _word),
    ("Retired Pages > Pending Page Blacklist", "RetiredPagesPendingStatus", _word),
    ("PCI > Device Id", "PciInfo", lambda text: {"pciDeviceId": int(text, 16)}),
    ("Max Customer Boost Clocks > Graphics", "MaxCustomerBoostClock 0", _whole),
    *((f"{group} > {name}", f"{question} {number}", _whole)
      for group, question in (("Clocks", "ClockInfo"), ("Max Clocks", "MaxClockInfo"),
                              ("Applications Clocks", "ApplicationsClock"),
                              ("Default Applications Clocks", "DefaultApplicationsClock"))
      for name, number in _CLOCKS.items() if "Info" in question or number in (0, 2)),
    *((f"{group} > {name}", question, _milliwatts)
      for group in ("Power Readings", "GPU Power Readings")
      for name, question in (("Power Draw", "PowerUsage"), ("Instantaneous Power Draw", "PowerUsage"),
                             ("Power Limit", "PowerManagementLimit"),
                             ("Requested Power Limit", "PowerManagementLimit"),
                             ("Enforced Power Limit", "EnforcedPowerLimit"),
                             ("Current Power Limit", "EnforcedPowerLimit"),
                             ("Default Power Limit", "PowerManagementDefaultLimit"))),
)  # fmt: skip
_REASONS = {
    "Idle": 0x1, "Applications Clocks Setting": 0x2, "SW Power Cap": 0x4, "HW Slowdown": 0x8, "Sync Boost": 0x10,
    "SW Thermal Slowdown": 0x20, "HW Slowdown > HW Thermal Slowdown": 0x40,
    "HW Slowdown > HW Power Brake Slowdown": 0x80, "Display Clock Setting": 0x100, "Display Clocks Setting": 0x100,
}  # fmt: skip


def blocks(text: str) -> Iterator[tuple[str, Rows]]:
    """The bus id of each GPU, as sysfs spells it, and its rows; of two that have one path the first."""
    rows: Rows = {}
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        if line.startswith("GPU ") and line.count(":") == 2:
            rows, above = {}, []
            yield _bus_id(line.split()[1]), rows
        elif line.startswith(" ") and line.strip():
            depth = len(line) - len(line.lstrip())
            label, colon, value = line.strip().partition(" :")
            above = [group for group in above if group[0] < depth] + [(depth, label.strip())]
            if colon:
                rows.setdefault(" > ".join(name for _, name in above), value.strip())


def _bus_id(text: str) -> str:
    domain, _, rest = text.partition(":")
    return f"{int(domain, 16):04x}:{rest.lower()}"


def of_query(rows: Rows) -> dict[str, Json]:
    """NVML's answers by function and arguments; None for what the board does not have."""
    found: dict[str, Json] = {}
    for path, question, read in SINGLE:
        if path in rows and found.get(question) is None:
            found[question] = None if rows[path] in _NOTHING else read(rows[path])
    found |= _memory(rows) | _pairs(rows) | _errors(rows)
    reasons = {path.partition(" > ")[2]: value for path, value in rows.items() if _is_reason(path)}
    if reasons:
        given = {name: value for name, value in reasons.items() if name in _REASONS}
        found["CurrentClocksEventReasons"] = sum(_REASONS[name] for name, value in given.items() if value == "Active")
    return found


def _is_reason(path: str) -> bool:
    return path.startswith(("Clocks Throttle Reasons > ", "Clocks Event Reasons > "))


def _memory(rows: Rows) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for group, question, before in (("FB", "MemoryInfo", ""), ("BAR1", "BAR1MemoryInfo", "bar1")):
        amounts: dict[str, Json] = {}
        for name in ("Total", "Used", "Free", "Reserved"):
            text = rows.get(f"{group} Memory Usage > {name}", "N/A")
            if text != "N/A":
                amounts[f"{before}{name}" if before else name.lower()] = _whole(text) << 20
        if amounts:
            found[question] = amounts
    if (busy := rows.get("Utilization > Gpu", rows.get("Utilization > GPU"))) is not None:
        of_memory = rows.get("Utilization > Memory", "N/A")
        used: dict[str, Json] = {"gpu": _whole(busy), "memory": _whole(of_memory)} if busy != "N/A" else {}
        found["UtilizationRates"] = used or None
    return found


def _pairs(rows: Rows) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for group, question in (("Ecc Mode", "EccMode"), ("ECC Mode", "EccMode"), ("MIG Mode", "MigMode")):
        values = [rows.get(f"{group} > {name}", "N/A") for name in ("Current", "Pending")]
        if f"{group} > Current" in rows:
            found[question] = None if "N/A" in values else [_WORDS[value] for value in values]
    for group in ("Power Readings", "GPU Power Readings"):
        limits = [rows.get(f"{group} > {name} Power Limit", "N/A") for name in ("Min", "Max")]
        if f"{group} > Min Power Limit" in rows:
            found["PowerManagementLimitConstraints"] = None if "N/A" in limits else [*map(_milliwatts, limits)]
    return found


def _errors(rows: Rows) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for at, period in enumerate(("Volatile", "Aggregate")):
        for kind, bits, word in ((0, "Single Bit", "Correctable"), (1, "Double Bit", "Uncorrectable")):
            begins = (f"ECC Errors > {period} > SRAM {word}", f"ECC Errors > {period} > DRAM {word}")
            parts = [value for path, value in rows.items() if path.startswith(begins)]
            total = rows.get(f"ECC Errors > {period} > {bits} > Total")
            counts = [int(part) for part in parts if part != "N/A"]
            if total is not None:
                found[f"TotalEccErrors {kind} {at}"] = None if total == "N/A" else int(total)
            elif parts:
                found[f"TotalEccErrors {kind} {at}"] = sum(counts) if counts else None
    repairs = [rows.get(f"ECC Errors > {unit} Repair Pending") for unit in ("Channel", "TPC")]
    if None not in repairs:
        found["RepairStatus"] = None if "N/A" in repairs else [_WORDS[str(repair)] for repair in repairs]
    flag = rows.get("ECC Errors > Aggregate > SRAM Threshold Exceeded", "N/A")
    if "ECC Errors > Aggregate > SRAM Threshold Exceeded" in rows:
        status: dict[str, Json] = {"bThresholdExceeded": _WORDS.get(flag), **_sram(rows)}
        found["SramEccErrorStatus"] = None if flag == "N/A" else status
    remapped = [rows.get(f"Remapped Rows > {name}") for name in
                ("Correctable Error", "Uncorrectable Error", "Pending", "Remapping Failure Occurred")]  # fmt: skip
    if rows.get("Remapped Rows") == "N/A":
        found["RemappedRows"] = None
    elif remapped[0] is not None:
        found["RemappedRows"] = [_WORDS[value] if value in _WORDS else int(str(value)) for value in remapped]
    levels = {name: rows.get(f"Remapped Rows > Bank Remap Availability Histogram > {name.capitalize()}")
              for name in ("max", "high", "partial", "low", "none")}  # fmt: skip
    if all(levels.values()):
        found["RowRemapperHistogram"] = {name: _whole(str(value)) for name, value in levels.items()}
    return found


def _sram(rows: Rows) -> dict[str, int]:
    bits = {"Parity": "SRAM Uncorrectable Parity", "SecDed": "SRAM Uncorrectable SEC-DED"}
    units = {"L2": "L2", "Sm": "SM", "Pcie": "PCIE", "Mcu": "Microcontroller", "Other": "Other"}
    printed = {f"aggregateUnc{name}": f"ECC Errors > Aggregate > {label}" for name, label in bits.items()}
    printed |= {f"aggregateUncBucket{name}": f"ECC Errors > Aggregate Uncorrectable SRAM Sources > SRAM {label}"
                for name, label in units.items()}  # fmt: skip
    return {name: int(rows[path]) for name, path in printed.items() if rows.get(path, "N/A") != "N/A"}


def of_table(text: str) -> Iterator[tuple[str, int, dict[str, Json]]]:
    """Bus id, number and NVML's answers for each GPU of a table whose rows are whole."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    at = next((number for number, line in enumerate(lines) if line.startswith("|=")), len(lines))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[at + 1 :]]
    for first, second in pairwise(rows):
        words = first[0].split()
        if len(first) == 3 and len(second) == 3 and words and words[0].isdigit() and ":" in first[1]:
            yield _bus_id(first[1].split()[0]), int(words[0]), _of_rows(words, first, second)


def _of_rows(words: list[str], first: list[str], second: list[str]) -> dict[str, Json]:
    found: dict[str, Json] = {"PersistenceMode": _WORDS[words[-1]], "DisplayActive": _display(first[1].split()[1])}
    name = " ".join(words[1:-1])
    if not name.endswith("."):
        found["Name"] = name
    elif name in ("Tesla P100-SXM2...", "Tesla V100-SXM2...", "Tesla V100-DGXS..."):
        found["Name"] = f"{name.rstrip('.')}-{16 if _whole(second[1].split('/')[1]) < 20000 else 32}GB"
    found["TotalEccErrors 1 0"] = int(first[2]) if first[2].isdigit() else None
    if first[2] != "N/A":
        found["EccMode"] = [int(first[2] != "Off"), None]
    fan, temperature, state, *power = second[0].split()
    draw, limit = "".join(power).split("/")
    used, total = second[1].split("/")
    if fan != "N/A":
        found["FanSpeed"] = _whole(fan)
    found["Temperature 0"] = _whole(temperature)
    found["PerformanceState"] = _whole(state.removeprefix("P"))
    found["PowerUsage"] = _milliwatts(draw)
    found["EnforcedPowerLimit"] = _milliwatts(limit)
    found["MemoryInfo"] = {"used": _whole(used) << 20, "total": _whole(total) << 20}
    found["ComputeMode"] = _MODES[second[2].split("%")[-1].strip()]
    return found


def _display(word: str) -> int | None:
    return _WORDS.get(word)
