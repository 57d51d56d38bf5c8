"""What nvidia-smi prints where it cannot reach the driver or a GPU, and its warnings."""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.missing import Json
from dgxcheck.readers.listing import COUNT, INIT, NO_HANDLE
from dgxcheck.readers.model import Imported
from dgxcheck.readers.nvidia_smi.matrix import bare

TOOL = "nvidia-smi"
_INIT = (
    (re.compile(r"NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver\b.*"), "absent", 9),
    (re.compile(r"NVIDIA-SMI couldn't find libnvidia-ml\.so\b.*"), "absent", 12),
    (re.compile(r"Failed to initialize NVML: Driver Not Loaded\b.*"), "absent", 9),
    (re.compile(r"Failed to initialize NVML: Driver/library version mismatch\b.*"), "garbled", 18),
    (re.compile(r"Failed to initialize NVML: Insufficient Permissions\b.*"), "denied", 4),
    (re.compile(r"Failed to initialize NVML: GPU access blocked by the operating system\b.*"), "denied", 17),
    (re.compile(r"Failed to initialize NVML: \S.{0,80}"), "garbled", 999),
)
"""Words, gap and nvmlReturn_t."""
_MORE = re.compile(r"Please also try adding directory that contains libnvidia-ml\.so to your system PATH\.?"
                   r"|NVML library version: (?P<library>[\d.]{1,20})")  # fmt: skip
_NO_GPU = re.compile(r"No devices were found\.?")
_HANDLE = re.compile(
    r"Unable to (?:determine|detect) the device handle for GPU ?(?:\d{1,3}: )?"
    r"(?P<bdf>[0-9a-f]{1,8}:[0-9a-f]{1,4}:[0-9a-f]{1,4}(?:\.\d)?)\"?: (?P<why>\S.{0,200}?)[\"*]{0,4}",
    re.IGNORECASE | re.ASCII,
)
_QUOTED = re.compile(r"[\"'`“](?P<said>Unable to [^\"'`“”]{20,300}?)\.?[\"'`”]", re.IGNORECASE)
"""Such a line within a sentence."""
_INFOROM = re.compile(
    r"WARNING: infoROM is corrupted at gpu (?P<bdf>[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])\.?",
    re.IGNORECASE | re.ASCII,
)
_CORRUPTED: Json = {"missing": "garbled", "detail": "nvidia-smi: infoROM is corrupted", "code": 14}


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The first failure of a text; all lines of the same kind are understood."""
    facts: dict[str, Json] = {}
    understood: set[int] = set()
    for number, line in enumerate(lines):
        text = bare(line[:400]).strip().strip('"')
        if found := _facts(text):
            understood.add(number)
            if INIT not in facts or INIT not in found:
                facts |= found
        elif facts and (more := _MORE.fullmatch(text)):
            understood.add(number)
            if more["library"] and isinstance(failed := facts.get(INIT), dict):
                facts[INIT] = {**failed, "detail": f"{failed['detail']}, library {more['library']}"}
    return (Imported(tool=TOOL, facts=facts, understood=frozenset(understood)),) if facts else ()


def _facts(text: str) -> dict[str, Json]:
    for form, gap, code in _INIT:
        if form.fullmatch(text):
            return {INIT: {"missing": gap, "detail": f"nvidia-smi: {text[:160]}", "code": code}}
    if _NO_GPU.fullmatch(text):
        return {INIT: True, COUNT: 0}
    quoted = _QUOTED.search(text)
    if match := _HANDLE.fullmatch(text) or (_HANDLE.fullmatch(quoted["said"]) if quoted else None):
        return {f"{NO_HANDLE} {as_bdf(match['bdf']) or match['bdf'].lower()}": match["why"]}
    if (match := _INFOROM.fullmatch(text)) and (bdf := as_bdf(match["bdf"])) is not None:
        return {f"nvml nvmlDeviceGetInforomImageVersion {bdf}": _CORRUPTED}
    return {}
