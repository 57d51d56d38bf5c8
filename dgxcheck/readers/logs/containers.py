"""NVIDIA's container toolkit: errors of nvidia-container-cli and of Docker, and ``nvidia-container-cli info``.

Messages: libnvidia-container (https://github.com/NVIDIA/libnvidia-container), src/error.c and src/cli.
"""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import as_bdf
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Json
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.listing import INDEX
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded, gpu

TOOL = "nvidia-container-cli"
_ERROR = re.compile(
    r"nvidia-container-cli(?:\.real)?: (?P<kind>initialization|requirement|device|detection|mount|ldcache|container)"
    r" error: (?P<text>[^\"\\]{1,300})"
)
_NO_TOOLKIT = re.compile(
    r"could not select device driver [\"'\\]{0,4}(?:nvidia)?[\"'\\]{0,4} with capabilities: \[\[.{0,40}gpu"
)
_NO_RUNTIME = re.compile(r"[Uu]nknown (?:or invalid )?runtime(?: name)?:? \"?nvidia\"?")
_MEANINGS: tuple[tuple[re.Pattern[str], Outcome, FaultKind], ...] = (
    (re.compile(r"driver/library version mismatch"), "fail", Fault.DRIVER_MISMATCH),
    (re.compile(r"driver not loaded|nvidia-driver.{0,40}not loaded"), "fail", Fault.DRIVER_NOT_LOADED),
    (re.compile(r"load library failed: libnvidia-ml"), "fail", Fault.LIBRARY_MISSING),
    (re.compile(r"unsatisfied condition: (?:cuda|driver)"), "warn", Fault.DRIVER_MISMATCH),
    (re.compile(r"GPU is lost|nvml error: gpu is lost", re.IGNORECASE), "fail", Fault.DRIVER_UNRESPONSIVE),
    (re.compile(r"driver rpc error: timed out"), "fail", Fault.DRIVER_UNRESPONSIVE),
    (re.compile(r"(?:nvml|cuda|driver) error: unknown error|driver (?:rpc )?error"), "fail", Fault.DRIVER_FAILED),
    (re.compile(r""), "warn", Fault.CONTAINER_RUNTIME),
)
_FIELD = re.compile(
    r"(?P<name>NVRM version|CUDA version|Device Index|Device Minor|Model|Brand|GPU UUID|Bus Location|Architecture):"
    r" {1,12}(?P<value>\S.{0,100})"
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The errors as results, and the GPUs that ``info`` lists."""
    reports = Reports(TOOL)
    errors: set[int] = set()
    rows: list[tuple[int, str, str]] = []
    for number, line in enumerate(bounded(lines)):
        if match := _ERROR.search(line):
            text = match["text"].strip().rstrip(":")
            outcome, fault = next((how, kind) for form, how, kind in _MEANINGS if form.search(text))
            reports.add(HOST, match["kind"], outcome, fault, f"{match['kind']} error: {text}")
        elif _NO_TOOLKIT.search(line) or _NO_RUNTIME.search(line):
            reports.add(
                HOST, "runtime", "fail", Fault.CONTAINER_RUNTIME, "the container runtime does not know NVIDIA's GPUs"
            )
        else:
            if field := _FIELD.fullmatch(line.strip()):
                rows.append((number, field["name"], field["value"].strip()))
            continue
        errors.add(number)
    found = [Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(errors))] if errors else []
    facts = _info(rows)
    if facts:
        found.append(Imported(tool=f"{TOOL} info", facts=facts, understood=frozenset(number for number, _, _ in rows)))
    return tuple(found)


def _info(rows: list[tuple[int, str, str]]) -> dict[str, Json]:
    """Driver and GPUs; nothing where the line of the driver or a GPU's bus id is not there."""
    facts: dict[str, Json] = {}
    index: int | None = None
    name = uuid = ""
    for _, field, value in rows:
        if field == "NVRM version":
            facts["nvml nvmlSystemGetDriverVersion"] = value
        elif field == "Device Index":
            index, name, uuid = gpu(value), "", ""
        elif field == "Model":
            name = value
        elif field == "GPU UUID":
            uuid = value
        elif field == "Bus Location" and index is not None and (bdf := as_bdf(value)) is not None:
            facts[f"{INDEX} {index}"] = bdf
            facts |= {f"nvml nvmlDeviceGetName {bdf}": name} if name else {}
            facts |= {f"nvml nvmlDeviceGetUUID {bdf}": uuid} if uuid.startswith("GPU-") else {}
    return facts if any(key.startswith(INDEX) for key in facts) else {}
