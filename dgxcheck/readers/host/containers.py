"""NVIDIA's container toolkit: errors of nvidia-container-cli and of Docker, and ``nvidia-container-cli info``.

Messages: libnvidia-container (https://github.com/NVIDIA/libnvidia-container), src/error.c and src/cli.
"""

from __future__ import annotations

from dgxcheck.facts.bdf import as_bdf, nameless
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.readers.host.cuda import error_of_host
from dgxcheck.readers.listing import INDEX
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import gpu, numbered
from dgxcheck.readers.wording import any_of, is_entered, wordings

TOOL = "nvidia-container-cli"
_ERROR = LazyPattern(
    r"nvidia-container-cli(?:\.real)?: (?P<kind>initialization|requirement|device|detection|mount|ldcache|container)"
    r" error: (?P<text>[^\"\\]{1,300})"
)
_AROUND = LazyPattern(any_of("host/lines", "containers"))
_HOOK = LazyPattern(r"(?:^|\s)(?P<said>/\S{1,200}/98-nvidia\.sh exited with return code \d{1,3})")
"""Enroot's, which calls nvidia-container-cli: of interest where that says nothing."""
_RESULTS = wordings("host/results", "container")
_MEANINGS = wordings("host/container_errors")
_FIELD = LazyPattern(
    r"(?P<name>NVRM version|CUDA version|Device Index|Device Minor|Model|Brand|GPU UUID|Bus Location|Architecture):"
    r" {1,12}(?P<value>\S.{0,100})"
)


def read_containers(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The errors as results, and the GPUs that ``info`` lists."""
    part, info = ToolPart(TOOL), ToolPart(f"{TOOL} info")
    rows: list[tuple[str, str]] = []
    hook = ""
    for number, line in numbered(lines):
        if match := _ERROR.search(line):
            text = match["text"].strip().rstrip(":")
            outcome, fault = next((row.outcome, row.fault) for row in _MEANINGS if row.words.search(text))
            if fault is Fault.CONTAINER_ERROR and (passed_on := error_of_host(text)) is not None:
                outcome, fault = passed_on.outcome, passed_on.fault or fault
            subject = nameless(0) if fault is Fault.RESET_REQUIRED else HOST
            part.add(subject, match["kind"], outcome, fault, f"{match['kind']} error: {text}")
            part.lines.add(number)
        elif is_entered(part, _RESULTS, number, line):
            pass
        elif failed := _HOOK.search(line):
            hook = failed["said"]
            part.lines.add(number)
        elif field := _FIELD.fullmatch(line):
            rows.append((field["name"], field["value"].strip()))
            info.lines.add(number)
        elif _AROUND.fullmatch(line):
            part.beside.add(number)
    if hook and not part:
        part.add(HOST, "hook", "warn", Fault.CONTAINER_ERROR, hook)
    info.found = _info(rows)
    return (*part.imported(), *(info.imported() if info.found else ()))


def _info(rows: list[tuple[str, str]]) -> dict[str, Json]:
    """Driver and GPUs; nothing where the line of the driver or a GPU's bus id is not there."""
    facts: dict[str, Json] = {}
    shown: dict[str, str] = {}
    for field, value in rows:
        shown = {field: value} if field == "Device Index" else {**shown, field: value}
        if field == "NVRM version":
            facts["nvml nvmlSystemGetDriverVersion"] = value
        index = gpu(shown.get("Device Index", ""))
        if field == "Bus Location" and index is not None and (bdf := as_bdf(value)) is not None:
            facts[f"{INDEX} {index}"] = bdf
            facts |= {f"nvml nvmlDeviceGetName {bdf}": shown["Model"]} if "Model" in shown else {}
            uuid = shown.get("GPU UUID", "")
            facts |= {f"nvml nvmlDeviceGetUUID {bdf}": uuid} if uuid.startswith("GPU-") else {}
    return facts if any(key.startswith(INDEX) for key in facts) else {}
