"""What a dump of ``nvidia-smi`` says (text, XML, a JavaScript object, the plain table), as answers of NVML.

For tests alone: what a dump does not say stays unrecorded, what it calls N/A is unsupported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from xml.etree import ElementTree

from dgxcheck.reading import Json
from probes.bdf_text import as_bdf

Fields = dict[str, str]
"""Values by path: the labels of the text, or the tags of the XML with blanks for underscores, joined by ``/``."""
MIB = 1 << 20
NOWHERE = "0000:01:00.0"
"""The address of a GPU whose dump begins after it."""
UNSUPPORTED: Json = {"missing": "unsupported", "detail": "NVML 3: not supported"}
_GPU = re.compile(r"GPU ([0-9A-Fa-f]+:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9])$")
_TABLE = re.compile(
    r"\| +(?P<index>\d+) +(?P<name>\S.*?) +(?P<persistence>On|Off) +\| (?P<bdf>\S+) +(?P<display>On|Off) \|"
    r" +(?P<ecc>\S+) \|\s*"
    r"\| \S+ +(?P<temp>\d+C) +(?P<pstate>P\d+) +(?P<power>\d+W) / (?P<cap>\d+W) \|"
    r" +(?P<used>\d+)MiB / (?P<total>\d+)MiB \| +(?P<busy>\d+)% +(?P<mode>\S+)",
)
_WORDS = {"Enabled": 1, "Disabled": 0, "On": 1, "Off": 0, "Yes": 1, "No": 0, "Active": 1, "Not Active": 0,
          "Default": 0, "Prohibited": 2, "Exclusive_Process": 3, "None": 0,
          "Not Started": 1, "In Progress": 2, "Completed": 3, "Success": 0}  # fmt: skip
_REASONS = (("idle|gpu idle", 0x1), ("applications clocks setting", 0x2), ("sw power cap", 0x4), ("hw slowdown", 0x8),
            ("sync boost", 0x10), ("sw thermal slowdown", 0x20), ("hw thermal slowdown", 0x40),
            ("hw power brake slowdown", 0x80), ("display clocks? setting", 0x100))  # fmt: skip


def facts(path: Path) -> dict[str, Json]:
    """Lines of a recording: every GPU of the dump, listed by NVML in the dump's order."""
    text = path.read_text(encoding="utf-8")
    gpus = [*_gpus(text)]
    driver = re.search(r"(?:Driver Version *: +|<driver_version>|driver_version: ')([0-9.]+)", text)
    lines: dict[str, Json] = {
        "nvml nvmlInit": {"": True},
        "nvml nvmlDeviceGetCount": {"": len(gpus)},
        "nvml nvmlDeviceGetHandleByIndex": {str(index): bdf for index, (bdf, _) in enumerate(gpus)},
    }
    if driver:
        lines["nvml nvmlSystemGetDriverVersion"] = {"": driver[1]}
    for bdf, fields in gpus:
        for question, answer in _answers(fields):
            function, _, args = question.partition(" ")
            line = lines.setdefault(f"nvml nvmlDeviceGet{function} {bdf}", {})
            assert isinstance(line, dict)
            line[args] = answer
    return lines


def _gpus(text: str) -> Iterator[tuple[str, Fields]]:
    if "<nvidia_smi_log>" in text:
        for gpu in ElementTree.fromstring(text[text.index("<nvidia_smi_log>") :]).iter("gpu"):
            yield _bdf(gpu.attrib["id"]), dict(_flat_xml(gpu, ""))
    elif text.startswith("const "):
        for gpu in json.loads(_as_json(text))["gpu"]:
            yield _bdf(gpu["id"]), dict(_flat_json(gpu, ""))
    elif rows := [*_TABLE.finditer(re.sub(r"\n +\|", "\n|", text))]:
        for row in rows:
            yield _bdf(row["bdf"]), _of_table(row)
    else:
        yield from _of_text(text)


def _bdf(text: str) -> str:
    bdf = as_bdf(text)
    assert bdf is not None, text
    return bdf


def _flat_xml(element: ElementTree.Element, path: str) -> Iterator[tuple[str, str]]:
    for child in element:
        here = f"{path}{child.tag.replace('_', ' ')}"
        if len(child):
            yield from _flat_xml(child, f"{here}/")
        else:
            yield here, (child.text or "").strip()


def _flat_json(value: dict[str, Json], path: str) -> Iterator[tuple[str, str]]:
    for key, child in value.items():
        here = f"{path}{key.replace('_', ' ')}"
        if isinstance(child, dict):
            yield from _flat_json(child, f"{here}/")
        elif isinstance(child, str):
            yield here, child


def _as_json(text: str) -> str:
    body = text[text.index("{") : text.rindex("}") + 1]
    return re.sub(r",(\s*[}\]])", r"\1", re.sub(r"(\w+):(?= )", r'"\1":', body).replace("'", '"'))


def _of_text(text: str) -> Iterator[tuple[str, Fields]]:
    bdf, fields = NOWHERE, Fields()
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        if found := _GPU.search(line.strip()):
            if fields and bdf != NOWHERE:
                yield bdf, fields
            bdf, fields, above = _bdf(found[1]), {}, []
            continue
        label, colon, value = line.partition(" : ")
        if not label.strip():
            continue
        depth = len(line) - len(line.lstrip())
        above = [each for each in above if each[0] < depth]
        path = "/".join([*(name for _, name in above), label.strip().lower()])
        if colon:
            fields.setdefault(path, value.strip())
        above.append((depth, label.strip().lower()))
    yield bdf, fields


def _of_table(row: re.Match[str]) -> Fields:
    return {
        "product name": row["name"], "persistence mode": row["persistence"], "display active": row["display"],
        "performance state": row["pstate"], "temperature/gpu current temp": row["temp"],
        "power readings/power draw": row["power"], "power readings/enforced power limit": row["cap"],
        "fb memory usage/total": row["total"], "fb memory usage/used": row["used"],
        "ecc errors/volatile/double bit/total": row["ecc"], "compute mode": row["mode"],
    }  # fmt: skip


def _number(text: str) -> Json:
    found = re.match(r"-?\d+", text)
    return int(found[0]) if found else _WORDS.get(text, UNSUPPORTED)


def _milli(text: str) -> Json:
    found = re.match(r"[\d.]+", text)
    return round(float(found[0]) * 1000) if found else UNSUPPORTED


def _text(text: str) -> Json:
    return UNSUPPORTED if text in ("N/A", "") else text


def _hex(text: str) -> Json:
    return int(text, 16)


_POWER = "(?:gpu )?power readings/"
_TEMP = "temperature/"
SINGLE: tuple[tuple[str, str, Callable[[str], Json]], ...] = (
    ("Name", "product name", _text), ("Serial", "serial(?: number)?", _text), ("UUID", "(?:gpu )?uuid", _text),
    ("MinorNumber", "minor number", _number), ("VbiosVersion", "vbios version", _text),
    ("InforomImageVersion", "inforom version/(?:image|img) version", _text),
    ("InforomVersion 0", "inforom version/oem object", _text),
    ("InforomVersion 1", "inforom version/ecc object", _text),
    ("BoardId", "board id", _hex), ("MultiGpuBoard", "multigpu board", _number),
    ("PersistenceMode", "persistence mode", _number), ("DisplayMode", "display mode", _number),
    ("DisplayActive", "display active", _number), ("ComputeMode", "compute mode", _number),
    ("PerformanceState", "performance state", lambda text: _number(text.lstrip("P"))),
    ("PcieReplayCounter", "pci/(?:replays since reset|replay counter)", _number),
    ("CurrPcieLinkGeneration", "pci/.*/(?:pcie gen(?:eration)?)/current(?: link gen)?", _number),
    ("MaxPcieLinkGeneration", "pci/.*/(?:pcie gen(?:eration)?)/max(?: link gen)?", _number),
    ("CurrPcieLinkWidth", "pci/.*/link widths?/current(?: link width)?", _number),
    ("MaxPcieLinkWidth", "pci/.*/link widths?/max(?: link width)?", _number),
    ("Temperature 0", f"{_TEMP}gpu (?:current )?temp", _number),
    ("TemperatureThreshold 0", f"{_TEMP}gpu (?:shutdown temp|temp max threshold)", _number),
    ("TemperatureThreshold 1", f"{_TEMP}gpu (?:slowdown temp|temp slow threshold)", _number),
    ("FieldValues 82", f"{_TEMP}memory (?:current )?temp", _number),
    ("MarginTemperature", f"{_TEMP}gpu (?:t.limit temp|temp tlimit)", _number),
    ("FieldValues 193", f"{_TEMP}gpu (?:shutdown t.limit temp|temp max tlimit threshold)", _number),
    ("FieldValues 194", f"{_TEMP}gpu (?:slowdown t.limit temp|temp slow tlimit threshold)", _number),
    ("FieldValues 230", "gpu recovery action", _number),
    ("PowerUsage", f"{_POWER}(?:power draw|instant(?:aneous)? power draw)", _milli),
    ("EnforcedPowerLimit", f"{_POWER}(?:enforced|current) power limit", _milli),
    ("PowerManagementDefaultLimit", f"{_POWER}default power limit", _milli),
    ("RetiredPagesPendingStatus", "retired pages/(?:pending.*)", _number),
    *((f"{name} {number}", f"{group}/{clock}(?: clock)?", _number)
      for name, group in (("ClockInfo", "clocks"), ("MaxClockInfo", "max clocks"),
                          ("ApplicationsClock", "applications clocks"),
                          ("DefaultApplicationsClock", "default applications clocks"))
      for number, clock in ((0, "graphics"), (2, "mem(?:ory)?"))),
)  # fmt: skip


def _answers(fields: Fields) -> Iterator[tuple[str, Json]]:
    for question, pattern, read in SINGLE:
        if (said := _one(fields, pattern)) is not None:
            yield question, read(said)
    for question, group, parts in (
        ("EccMode", "ecc mode", ("current(?: ecc)?", "pending(?: ecc)?")),
        ("MigMode", "mig mode", ("current(?: mig)?", "pending(?: mig)?")),
        ("RemappedRows", "remapped rows", ("(?:correctable error|remapped row corr)",
                                           "(?:uncorrectable error|remapped row unc)", "(?:remapped row )?pending",
                                           "(?:remapping failure occurred|remapped row failure)")),
    ):  # fmt: skip
        yield from _several(fields, question, group, parts)
    yield from _memory(fields)
    yield from _reasons(fields)
    yield from _errors(fields)
    for cause, name in ((0, "single bit ecc|multiple single bit retirement/retired count"),
                        (1, "double bit ecc|double bit retirement/retired count")):  # fmt: skip
        if (said := _one(fields, f"retired pages/(?:{name})")) is not None:
            count = _number(said)
            yield f"RetiredPages {cause}", [{"address": n} for n in range(count)] if isinstance(count, int) else count
    if (state := _one(fields, "fabric/state")) is not None:
        status = _one(fields, "fabric/status") or "N/A"
        known = {"state": _number(state), "status": _number(status), "cliqueId": 0, "clusterUuid": "none"}
        yield "GpuFabricInfo", known if state in _WORDS and status in _WORDS else UNSUPPORTED
    if (device := _one(fields, "pci/(?:pci )?device id")) is not None:
        yield "PciInfo", {"pciDeviceId": int(device, 16)}


def _one(fields: Fields, pattern: str) -> str | None:
    wanted = re.compile(pattern)
    return next((value for path, value in fields.items() if wanted.fullmatch(path)), None)


def _several(fields: Fields, question: str, group: str, parts: tuple[str, ...]) -> Iterator[tuple[str, Json]]:
    if fields.get(group) == "N/A":
        yield question, UNSUPPORTED
        return
    said = [_one(fields, f"{group}/{part}") for part in parts]
    values = [_number(each) for each in said if each is not None]
    if len(values) == len(parts):
        yield question, values if all(isinstance(value, int) for value in values) else UNSUPPORTED


def _memory(fields: Fields) -> Iterator[tuple[str, Json]]:
    amounts: dict[str, Json] = {}
    for name in ("total", "used", "free", "reserved"):
        said = _one(fields, f"fb memory usage/{name}")
        if said is not None and isinstance(mib := _number(said), int):
            amounts[name] = mib * MIB
    if amounts:
        yield "MemoryInfo", amounts


def _reasons(fields: Fields) -> Iterator[tuple[str, Json]]:
    groups = "clocks (?:throttle|event) reasons"
    said = {
        bit: _one(fields, f"{groups}(?:/hw slowdown)?/(?:clocks (?:throttle|event) reason )?(?:{name})")
        for name, bit in _REASONS
    }
    if any(said.values()):
        yield "CurrentClocksEventReasons", sum(bit for bit, word in said.items() if word == "Active")


def _errors(fields: Fields) -> Iterator[tuple[str, Json]]:
    """Totals; from Ampere on the sum of SRAM and DRAM."""
    for when, period in ((0, "volatile"), (1, "aggregate")):
        total = _one(fields, f"ecc errors/{period}/double bit/total")
        parts = [
            value
            for path, value in fields.items()
            if re.fullmatch(f"ecc errors/{period}/[sd]ram uncorrectable.*", path)
        ]
        if total is not None:
            yield f"TotalEccErrors 1 {when}", _number(total)
        elif parts:
            numbers = [number for number in map(_number, parts) if isinstance(number, int)]
            yield f"TotalEccErrors 1 {when}", sum(numbers) if len(numbers) == len(parts) else UNSUPPORTED
