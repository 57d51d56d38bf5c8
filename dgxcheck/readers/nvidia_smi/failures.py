"""What nvidia-smi and nvdebugdump say where they reach no driver, or one GPU does not answer."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf, unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.listing import COUNT, INIT, NO_HANDLE, WITHOUT_NUMBER
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.nvidia_smi.table import COMMAND
from dgxcheck.readers.nvidia_smi.topo import bare
from dgxcheck.readers.wording import rows

_INIT = [(LazyPattern(row["words"]), row["gap"], int(row["code"])) for row in rows("nvidia_smi/failures")]
_MORE = LazyPattern(r"Please also try adding directory that contains libnvidia-ml\.so to your system PATH\.?"
                   r"|NVML library version: (?P<library>[\d.]{1,20})")  # fmt: skip
_NO_GPU = LazyPattern(r"No devices were found\.?")
_HANDLE = LazyPattern(
    r"Unable to (?:determine|detect) the device handle for GPU ?(?:\d{1,3}: )?"
    r"(?P<bdf>[0-9a-f]{1,8}:[0-9a-f]{1,4}:[0-9a-f]{1,4}(?:\.\d)?)\"?: (?P<why>\S.{0,200}?)[\"*` \\]{0,8}",
    flags=re.IGNORECASE | re.ASCII,
)
_HANDLE_BY_NUMBER = LazyPattern(
    r"Unable to (?:determine|detect) the device handle for GPU ?(?P<number>\d{1,2}): "
    r"(?P<why>[a-z]{2}[^:]{0,200}?)[\"*`]{0,4}",
    flags=re.IGNORECASE | re.ASCII,
)
_DEBUG_DUMP = LazyPattern(r"FAILED to get details on GPU \(0x(?P<number>[0-9a-f]{1,2})\): (?P<why>\S.{0,100})")
"""Of ``nvdebugdump -l``."""
_QUOTED = caseless_pattern(
    r"(?:[\"'`“](?P<message>Unable to [^\"'`“”]{20,300}?)\.?[\"'`”]"
    r"|[:：\u4e00-\u9fff] {0,2}(?P<last>Unable to [^\"'`“”]{20,200}?)\.?$)"
)
"""Such a line within a sentence, in quotation marks or at its end."""
_INFOROM = LazyPattern(
    r"WARNING: infoROM is corrupted at gpu (?P<bdf>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\.?",
    flags=re.IGNORECASE | re.ASCII,
)
_CORRUPTED: Json = {"missing": "garbled", "detail": "nvidia-smi: infoROM is corrupted", "code": 14}
_ENTERS = LazyPattern(
    r"(?:sudo )?(?:(?:docker|podman|nerdctl|crictl|kubectl|oc|ctr|singularity|apptainer|enroot|lxc|pct) .{0,200}?"
    r"\b(?:run|exec|start|enter)|srun .{0,200}--container-\w{3,10})\b"
)
"""A command that runs another one in a container."""


def read_failure(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The first failure of a text; all lines of the same kind are understood.

    A container can have lost its right to open a GPU that the host opens.
    """
    part = ToolPart("nvidia-smi")
    is_inside = False
    for at, line in enumerate(lines):
        text = bare(line[:400]).strip().strip('"')
        if COMMAND.search(text) or _ENTERS.match(text):
            is_inside = _ENTERS.match(text) is not None
        if found := _facts(text):
            part.lines.add(at)
            if is_inside and (key := next(iter(found))).startswith(NO_HANDLE):
                bdf, why = key.rpartition(" ")[2], str(found.pop(key))[:80]
                part.add(HOST, "handle", "fail", Fault.DRIVER_FAILED, f"cannot open GPU {bdf} in a container: {why}")
            if INIT not in part.found or INIT not in found:
                part.found |= found
        elif part.found and (more := _MORE.fullmatch(text)):
            part.lines.add(at)
            if more["library"] and isinstance(failed := part.found.get(INIT), dict):
                part.found[INIT] = {**failed, "detail": f"{failed['detail']}, library {more['library']}"}
    if part.found.get(COUNT) == 0:
        part.add(HOST, "devices", "unknown", Fault.DRIVER_FAILED, "no devices were found: the driver is loaded")
    return part.imported() if part.found or part else ()


def _facts(text: str) -> dict[str, Json]:
    for form, gap, code in _INIT:
        if form.fullmatch(text):
            return {INIT: {"missing": gap, "detail": f"nvidia-smi: {text[:160]}", "code": code}}
    if _NO_GPU.fullmatch(text):
        return {INIT: True, COUNT: 0}
    quoted = _QUOTED.search(text)
    if match := _HANDLE.fullmatch(text) or (_HANDLE.fullmatch(quoted["message"] or quoted["last"]) if quoted else None):
        return {f"{NO_HANDLE} {as_bdf(match['bdf']) or match['bdf'].lower()}": match["why"]}
    if match := _HANDLE_BY_NUMBER.fullmatch(text):
        return {f"{NO_HANDLE} {unplaced(int(match['number']))}": match["why"]}
    if match := _DEBUG_DUMP.fullmatch(text):
        return {f"{NO_HANDLE} {unplaced(int(match['number'], 16))}": match["why"]}
    if (match := _INFOROM.fullmatch(text)) and (bdf := as_bdf(match["bdf"])) is not None:
        return {f"nvml nvmlDeviceGetInforomImageVersion {bdf}": _CORRUPTED, f"{WITHOUT_NUMBER} {bdf}": True}
    return {}
