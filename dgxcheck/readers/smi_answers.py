"""What a dump of nvidia-smi says of a GPU, as the answers that NVML gave to it.

A field that a dump does not have stays unrecorded; what it calls N/A is unsupported, an error word is that error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from dgxcheck.frozen import Record
from dgxcheck.readers.model import Imported
from dgxcheck.reading import Json

Fields = dict[str, str]
"""Values by path, in lower case: the labels of the text, or the tags of the XML with blanks for underscores, joined by
``/``."""
MIB = 1 << 20
MOST_FIELDS = 4096
"""Of one GPU; lists of supported clocks and processes have the most."""
MOST_PAGES = 512
"""Retired pages; a GPU has room for 64 in its InfoROM."""
NOWHERE = "0000:00:00.0"
"""The bdf of a GPU whose dump begins after it: zeros, as NVML writes what it does not know."""
UNSUPPORTED: Json = {"missing": "unsupported", "detail": "nvidia-smi: N/A"}
_UNSUPPORTED = (
    "",
    "N/A",
    "Not Supported",
    "Not Found",
    "Function Not Found",
    "Requested functionality has been deprecated",
)
_ERRORS = {"GPU is lost": "lost", "GPU requires reset": "lost", "Insufficient Permissions": "denied"}
_WORDS = {"Enabled": 1, "Disabled": 0, "On": 1, "Off": 0, "Yes": 1, "No": 0, "Active": 1, "Not Active": 0,
          "Default": 0, "Prohibited": 2, "Exclusive_Process": 3, "E. Process": 3, "None": 0,
          "Not Started": 1, "In Progress": 2, "Completed": 3, "Success": 0}  # fmt: skip
_REASONS = (("idle|gpu idle", 0x1), ("applications clocks setting", 0x2), ("sw power cap", 0x4), ("hw slowdown", 0x8),
            ("sync boost", 0x10), ("sw thermal slowdown", 0x20), ("hw thermal slowdown", 0x40),
            ("hw power brake slowdown", 0x80), ("display clocks? setting", 0x100))  # fmt: skip
_BDF = re.compile(r"([0-9A-Fa-f]{1,8}):([0-9A-Fa-f]{2}):([01][0-9A-Fa-f])\.([0-7])")
_INTEGER = re.compile(r"-?\d{1,18}(?!\d)", re.ASCII)
_DECIMAL = re.compile(r"\d{1,9}(?:\.\d{1,6})?(?!\d)", re.ASCII)


class Section(Record, kw_only=False):
    """One GPU of a dump."""

    bdf: str
    fields: Fields


def as_bdf(text: str) -> str | None:
    """``00000000:06:00.0`` or ``0:6:0.0`` as sysfs spells it: ``0000:06:00.0``; None for anything else."""
    found = _BDF.fullmatch(text.strip())
    return f"{int(found[1], 16):04x}:{found[2]}:{found[3]}.{found[4]}".lower() if found else None


def imported(tool: str, gpus: Sequence[Section], system: Mapping[str, str], understood: frozenset[int]) -> Imported:
    """The answers of NVML about the GPUs of one dump, indexes in its order; ``system`` has its first lines."""
    facts: dict[str, Json] = {f"nvml nvmlDeviceGetHandleByIndex {n}": gpu.bdf for n, gpu in enumerate(gpus)}
    driver, cuda = system.get("driver version", ""), system.get("cuda version", "")
    if re.fullmatch(r"\d{1,4}(\.\d{1,4}){1,3}", driver, re.ASCII):
        facts["nvml nvmlSystemGetDriverVersion"] = driver
        tool = f"{tool} {driver}"
    if found := re.fullmatch(r"(\d{1,3})\.(\d{1,2})", cuda, re.ASCII):
        facts["nvml nvmlSystemGetCudaDriverVersion"] = int(found[1]) * 1000 + int(found[2]) * 10
    for gpu in gpus:
        for question, answer in answers(gpu.fields):
            function, _, args = question.partition(" ")
            facts[f"nvml nvmlDeviceGet{function} {gpu.bdf} {args}".rstrip()] = answer
    return Imported(tool=tool, facts=facts, understood=understood)


def answers(fields: Fields) -> Iterator[tuple[str, Json]]:
    """Function (without ``nvmlDeviceGet``) with its arguments, and the answer, for all that the fields tell."""
    for question, pattern, read in _SINGLE:
        if (said := _one(fields, pattern)) is not None:
            yield question, _read(said, read)
    for question, group, parts in _LISTS:
        yield from _several(fields, question, group, parts)
    yield from _memory(fields)
    yield from _reasons(fields)
    yield from _errors(fields)
    for cause, pattern in _RETIRED:
        if (said := _one(fields, pattern)) is not None:
            yield f"RetiredPages {cause}", _read(said, _pages)
    if (state := _one(fields, "fabric/state")) is not None:
        status, clique = _one(fields, "fabric/status") or "N/A", _one(fields, "fabric/cliqueid") or ""
        known = {"state": _WORDS.get(state), "status": _WORDS.get(status), "cliqueId": _number(clique)}
        known["clusterUuid"] = (_one(fields, "fabric/clusteruuid") or "").removesuffix("N/A")
        yield "GpuFabricInfo", known if state in _WORDS and status in _WORDS else UNSUPPORTED
    device = re.fullmatch(r"(?:0x)?([0-9A-Fa-f]{8})", _one(fields, "pci/(?:pci )?device id") or "")
    if device:
        yield "PciInfo", {"pciDeviceId": int(device[1], 16)}


def _read(said: str, read: Callable[[str], Json]) -> Json:
    """The answer that a field shows, or the gap that its error word stands for."""
    word = said.strip().removeprefix("[").removesuffix("]").strip()
    if word in _UNSUPPORTED:
        return UNSUPPORTED
    if word in _ERRORS:
        return {"missing": _ERRORS[word], "detail": f"nvidia-smi: {word}"}
    found = read(word)
    return {"missing": "garbled", "detail": f"nvidia-smi: {word[:40]}"} if found is None else found


def _number(text: str) -> Json:
    found = _INTEGER.match(text)
    return int(found[0]) if found else _WORDS.get(text)


def _pages(text: str) -> Json:
    """A dump counts the pages and does not name them: each has the address 0."""
    count = _number(text)
    return [{"address": 0} for _ in range(count)] if isinstance(count, int) and 0 <= count <= MOST_PAGES else None


def _milli(text: str) -> Json:
    found = _DECIMAL.match(text)
    return round(float(found[0]) * 1000) if found else None


def _text(text: str) -> Json:
    return None if text in ("ERR!", "Unknown Error") else text[:200]


def _hex(text: str) -> Json:
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text) else None


def _pstate(text: str) -> Json:
    return _number(text.removeprefix("P"))


_POWER = "(?:gpu )?power readings/"
_TEMP = "temperature/"
_SINGLE: tuple[tuple[str, re.Pattern[str], Callable[[str], Json]], ...] = tuple(
    (question, re.compile(pattern), read)
    for question, pattern, read in (
        ("Name", "product name", _text), ("Serial", "serial(?: number)?", _text), ("UUID", "(?:gpu )?uuid", _text),
        ("MinorNumber", "minor number", _number), ("VbiosVersion", "vbios version", _text),
        ("InforomImageVersion", "inforom version/(?:image|img) version", _text),
        ("InforomVersion 0", "inforom version/oem object", _text),
        ("InforomVersion 1", "inforom version/ecc object", _text),
        ("BoardId", "board id", _hex), ("MultiGpuBoard", "multigpu board", _number),
        ("PersistenceMode", "persistence mode", _number), ("DisplayMode", "display mode", _number),
        ("DisplayActive", "display active", _number), ("ComputeMode", "compute mode", _number),
        ("PerformanceState", "performance state", _pstate),
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
    )
)  # fmt: skip
_LISTS = tuple(
    (question, group, tuple(re.compile(f"{group}/{part}") for part in parts))
    for question, group, parts in (
        ("EccMode", "ecc mode", ("current(?: ecc)?", "pending(?: ecc)?")),
        ("MigMode", "mig mode", ("current(?: mig)?", "pending(?: mig)?")),
        ("RemappedRows", "remapped rows", ("(?:correctable error|remapped row corr)",
                                           "(?:uncorrectable error|remapped row unc)", "(?:remapped row )?pending",
                                           "(?:remapping failure occurred|remapped row failure)")),
    )
)  # fmt: skip
_RETIRED = (
    (0, re.compile("retired pages/(?:single bit ecc|multiple single bit retirement/retired count)")),
    (1, re.compile("retired pages/(?:double bit ecc|double bit retirement/retired count)")),
)
_GROUPS = "clocks (?:throttle|event) reasons"
_THROTTLE = tuple(
    (bit, re.compile(f"{_GROUPS}(?:/hw slowdown)?/(?:clocks (?:throttle|event) reason )?(?:{name})"))
    for name, bit in _REASONS
)


def _one(fields: Fields, pattern: str | re.Pattern[str]) -> str | None:
    if isinstance(pattern, str):
        pattern = re.compile(pattern)
    return next((value for path, value in fields.items() if pattern.fullmatch(path)), None)


def _several(fields: Fields, question: str, group: str, parts: Sequence[re.Pattern[str]]) -> Iterator[tuple[str, Json]]:
    if fields.get(group) == "N/A":
        yield question, UNSUPPORTED
        return
    values = [_read(said, _number) for part in parts if (said := _one(fields, part)) is not None]
    if len(values) == len(parts):
        gap = next((value for value in values if not isinstance(value, int)), None)
        yield question, values if gap is None else gap


def _memory(fields: Fields) -> Iterator[tuple[str, Json]]:
    amounts: dict[str, Json] = {}
    for name in ("total", "used", "free", "reserved"):
        said = _one(fields, f"fb memory usage/{name}")
        if said is not None and isinstance(mib := _read(said, _number), int):
            amounts[name] = mib * MIB
    if amounts:
        yield "MemoryInfo", amounts


def _reasons(fields: Fields) -> Iterator[tuple[str, Json]]:
    said = {bit: _one(fields, pattern) for bit, pattern in _THROTTLE}
    words = set(said.values()) - {None}
    if words & {"Active", "Not Active"}:
        yield "CurrentClocksEventReasons", sum(bit for bit, word in said.items() if word == "Active")
    elif words:
        yield "CurrentClocksEventReasons", _read(str(sorted(map(str, words))[0]), _number)


def _errors(fields: Fields) -> Iterator[tuple[str, Json]]:
    """Totals of uncorrected errors; from Ampere on the sum of SRAM and DRAM."""
    for when, period in ((0, "volatile"), (1, "aggregate")):
        total = _one(fields, f"ecc errors/{period}/double bit/total")
        sums = re.compile(f"ecc errors/{period}/[sd]ram uncorrectable.*")
        parts = [_read(value, _number) for path, value in fields.items() if sums.fullmatch(path)]
        numbers = [number for number in parts if isinstance(number, int)]
        if total is not None:
            yield f"TotalEccErrors 1 {when}", _read(total, _number)
        elif parts:
            gaps = [part for part in parts if not isinstance(part, int)]
            yield f"TotalEccErrors 1 {when}", gaps[0] if gaps else sum(numbers)
