"""A ``libnvidia-ml.so.1`` that gives the answers of a recording to the real binding, and faults on request.

The library reads the table of ``NVML_STANDIN`` at ``nvmlInit`` and appends every call to the file of
``NVML_STANDIN_CALLS``. ``NVML_STANDIN_FAULT`` holds faults, separated by ``;``::

    hang FUNCTION [GPUS]    crash FUNCTION [GPUS]    error CODE FUNCTION [GPUS]    slow SECONDS FUNCTION [GPUS]
    value NUMBER FUNCTION [GPUS]    missing FUNCTION

and before any of them ``again``: from the second time on that the same question is asked, by whichever process, as the
log of the calls has it; there must be one.
FUNCTION is a function of the plan or a symbol (``nvmlDeviceGetTemperature`` is also meant where ``TemperatureV``
serves it), or ``*``: any call that takes a handle. ``missing`` knows symbols alone, so that an older one can still
serve. GPUS is a list of indices (``0,3``); ``nvmlDeviceGetHandleByIndex`` counts as a call of the GPU it asks for.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote_from_bytes

from dgxcheck.source.protocol import Json

SONAME = "libnvidia-ml.so.1"
SOURCE = Path(__file__).with_name("nvml.c")

# The order in which nvml.c reads the fields of a struct.
STRUCTS = {
    "nvmlDeviceGetMemoryInfo": ("total", "free", "used", "reserved"),
    "nvmlDeviceGetBAR1MemoryInfo": ("bar1Total", "bar1Free", "bar1Used"),
    "nvmlDeviceGetUtilizationRates": ("gpu", "memory"),
    "nvmlDeviceGetViolationStatus": ("referenceTime", "violationTime"),
    "nvmlDeviceGetRowRemapperHistogram": ("max", "high", "partial", "low", "none"),
    "nvmlDeviceGetSramEccErrorStatus": (
        "bThresholdExceeded", "aggregateUncParity", "aggregateUncSecDed", "aggregateUncBucketL2",
        "aggregateUncBucketSm", "aggregateUncBucketPcie", "aggregateUncBucketMcu", "aggregateUncBucketOther",
    ),
    "nvmlDeviceGetPlatformInfo": ("slotNumber", "trayIndex", "hostId", "moduleId"),
    "nvmlDeviceGetC2cModeInfo": ("isC2cEnabled",),
    "nvmlDeviceGetPciInfo": ("busId", "pciDeviceId", "pciSubSystemId"),
    "nvmlDeviceGetNvLinkRemotePciInfo": ("busId", "pciDeviceId", "pciSubSystemId"),
    "nvmlDeviceGetRetiredPages": ("address", "timestamp"),
    "nvmlDeviceGetComputeRunningProcesses": ("pid", "usedGpuMemory"),
    "nvmlDeviceGetGraphicsRunningProcesses": ("pid", "usedGpuMemory"),
    "nvmlDeviceGetGpuFabricInfo": ("clusterUuid", "status", "cliqueId", "state", "healthMask", "healthSummary"),
}
CODES = {"unsupported": 3, "denied": 4, "absent": 6, "timeout": 10, "lost": 15, "garbled": 999}
FIRST_BRANCH = {  # symbol -> the driver branch that brought it
    "nvmlInitWithFlags": 387,
    "nvmlDeviceGetPciInfo_v3": 387,
    "nvmlDeviceGetNvLinkRemotePciInfo_v2": 387,
    "nvmlDeviceGetRetiredPages_v2": 410,
    "nvmlDeviceGetArchitecture": 450,
    "nvmlDeviceGetMigMode": 450,
    "nvmlDeviceGetRemappedRows": 450,
    "nvmlDeviceGetRowRemapperHistogram": 450,
    "nvmlDeviceGetMemoryAffinity": 450,
    "nvmlDeviceGetComputeRunningProcesses_v2": 450,
    "nvmlDeviceGetGraphicsRunningProcesses_v2": 450,
    "nvmlDeviceGetNvLinkRemoteDeviceType": 470,
    "nvmlDeviceGetMemoryInfo_v2": 510,
    "nvmlDeviceGetComputeRunningProcesses_v3": 510,
    "nvmlDeviceGetGraphicsRunningProcesses_v3": 510,
    "nvmlDeviceGetGpuMaxPcieLinkGeneration": 525,
    "nvmlDeviceGetGpuFabricInfo": 525,
    "nvmlDeviceGetCurrentClocksEventReasons": 535,
    "nvmlDeviceGetNumaNodeId": 550,
    "nvmlDeviceGetGpuFabricInfoV": 550,
    "nvmlDeviceGetSramEccErrorStatus": 550,
    "nvmlDeviceGetTemperatureV": 570,
    "nvmlDeviceGetMarginTemperature": 570,
    "nvmlDeviceGetRepairStatus": 575,
    "nvmlDeviceGetUnrepairableMemoryFlag_v1": 580,
    "nvmlDeviceGetGspFirmwareVersion": 510,
    "nvmlDeviceGetModuleId": 535,
    "nvmlDeviceGetC2cModeInfoV": 560,
    "nvmlDeviceGetPlatformInfo": 570,
    "nvmlDeviceGetAddressingMode": 580,
}


class Asked(NamedTuple):
    """One call that reached the library: the question as a recording spells it, and the symbol that was called."""

    question: str
    symbol: str


def compiler() -> str | None:
    """The C compiler of this machine, if there is one."""
    return shutil.which("gcc")


def newer_than(branch: int) -> frozenset[str]:
    """The symbols that a driver of this branch lacks: ``newer_than(384)`` for the first drivers of a DGX-1."""
    return frozenset(symbol for symbol, first in FIRST_BRANCH.items() if first > branch)


def build(directory: Path, *, without: Collection[str] = ()) -> Path:
    """Compile the library into a directory, with the symbols named (``_vN`` and all) left out of what it exports."""
    gcc = compiler()
    if gcc is None:
        raise FileNotFoundError("gcc")
    library, exports = directory / SONAME, directory / "exports.map"
    hidden = "".join(f"{symbol}; " for symbol in sorted(without))
    exports.write_text(f"{{ global: nvml*; local: {hidden}*; }};\n")
    flags = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
    linking = (f"-Wl,-soname,{SONAME}", f"-Wl,--version-script={exports}")
    subprocess.run((gcc, *flags, *linking, "-o", str(library), str(SOURCE)), check=True)
    unknown = [symbol for symbol in without if f"{symbol}\0".encode() not in library.read_bytes()]
    if unknown:
        raise ValueError(f"not in the stand-in: {unknown}")
    return library


def environment(
    library: Path,
    answers: Path,
    *,
    faults: Sequence[str] = (),
    calls: Path | None = None,
    base: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """The environment of a child process that is to meet this library with these answers and faults."""
    given = dict(os.environ if base is None else base)
    path = [str(library.parent), *filter(None, [given.get("LD_LIBRARY_PATH")])]
    given |= {"LD_LIBRARY_PATH": ":".join(path), "NVML_STANDIN": str(answers), "NVML_STANDIN_FAULT": ";".join(faults)}
    if calls is not None:
        given["NVML_STANDIN_CALLS"] = str(calls)
    return given


def read_calls(path: Path) -> tuple[Asked, ...]:
    """What the library was asked, in order; a list is asked for twice, first for its length."""
    lines = path.read_text().splitlines() if path.exists() else []
    return tuple(Asked(*line.split("\t")) for line in lines)


def write_answers(facts: Mapping[str, Mapping[str, Json]], path: Path) -> None:
    """Write the NVML lines of a recording's ``facts`` as the table that the library reads; replaces it in one step."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.write_bytes(answer_table(facts))
    fresh.replace(path)


def answer_table(facts: Mapping[str, Mapping[str, Json]]) -> bytes:
    """The NVML facts as lines of tab-separated fields, sorted by question.

    A handle needs a bus id, so a GPU whose ``nvmlDeviceGetPciInfo`` was not recorded gets one with no ids in it.
    """
    table: dict[str, list[str]] = {}
    for key, line in facts.items():
        source, _, call = key.partition(" ")
        if source == "nvml":
            function = call.partition(" ")[0]
            for args, fact in line.items():
                table[_asked(function, f"{call} {args}".rstrip())] = _fields(function, fact)
    for fact in facts.get("nvml nvmlDeviceGetHandleByIndex", {}).values():
        if isinstance(fact, str):
            table.setdefault(f"nvmlDeviceGetPciInfo {fact}", [_field(fact), "0", "0"])
    lines = sorted((_quoted(question), fields) for question, fields in table.items())
    return "".join("\t".join([question, *fields]) + "\n" for question, fields in lines).encode()


def _asked(function: str, question: str) -> str:
    """As the library is asked: a field of an NVLink is named before the link, its scope, which is left out if 0."""
    words = question.split()
    if function != "nvmlDeviceGetFieldValues" or len(words) != 4:
        return question
    _, bdf, link, field = words
    return " ".join((function, bdf, field, *([link] if link != "0" else [])))


def _fields(function: str, fact: Json) -> list[str]:
    match fact:
        case {"missing": str(gap), **more}:
            return [f"!{_code(gap, str(more.get('detail', '')))}"]
        case dict():
            return [_field(fact.get(name)) for name in STRUCTS[function]]
        case list():
            return [field for item in fact for field in _fields(function, item)]
    return [_field(fact)]


def _code(gap: str, detail: str) -> int:
    told = re.match(r"NVML (\d{1,3})\b", detail)
    return (int(told[1]) if told else CODES.get(gap, 3)) or 999


def _field(value: Json) -> str:
    match value:
        case None:
            return "-"
        case bool():
            return str(int(value))
        case str():
            return _quoted(value)
        case list():
            return "".join(f"{byte:02x}" for byte in value if isinstance(byte, int))
    return str(value)


def _quoted(text: str) -> str:
    """Text in one field; a lone surrogate such as U+DCFF stands for a byte that is not UTF-8."""
    return quote_from_bytes(text.encode("utf-8", "surrogateescape"), safe=" :.,;/()[]{}<>@#$&*+='\"?|^`\\")
