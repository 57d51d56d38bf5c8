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
from dgxcheck.readers.wording import wordings

TOOL = "nvidia-container-cli"
_ERROR = LazyPattern(
    r"nvidia-container-cli(?:\.real)?: (?P<kind>initialization|requirement|device|detection|mount|ldcache|container)"
    r" error: (?P<text>[^\"\\]{1,300})"
)
_NO_TOOLKIT = LazyPattern(
    r"could not select device driver [\"'\\]{0,4}(?:nvidia)?[\"'\\]{0,4} with capabilities: \[\[.{0,40}gpu"
)
_NO_RUNTIME = LazyPattern(
    r"[Uu]nknown (?:or invalid )?runtime(?: name)?:? \"?nvidia\"?|no runtime for \"nvidia\" is configured"
    r"|unresolvable CDI devices .{0,100}nvidia\.com/|Command not found: nvidia-container-cli"
)
_OF_DOCKER = LazyPattern(r"docker: Error response from daemon: |ERRO\[\d{4}\] error waiting for container")
_HOOK = LazyPattern(r"(?:^|\s)(?P<said>/\S{1,200}/98-nvidia\.sh exited with return code \d{1,3})")
"""Enroot's, which calls nvidia-container-cli: of interest where that says nothing."""
_PYXIS = LazyPattern(r"pyxis: (?:.{0,40} )?failed to import docker image")
_OF_PYXIS = LazyPattern(
    r"(?:.{0,80} )?error: (?:pyxis: (?:container start failed|printing |couldn't start container).{0,120}"
    r"|spank: required plugin spank_pyxis\.so: .{1,80})"
)
_IMPORT = (
    "pyxis could not import an image: the lines of enroot below say why (registry, ~/.config/enroot/.credentials, room"
    " in ENROOT_CACHE_PATH)"
)
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
        elif _NO_TOOLKIT.search(line) or _NO_RUNTIME.search(line):
            text = "the container runtime does not know NVIDIA's GPUs"
            part.add(HOST, "runtime", "fail", Fault.CONTAINER_RUNTIME, text)
        elif _PYXIS.search(line):
            part.add(HOST, "image", "note", None, _IMPORT)
        elif failed := _HOOK.search(line):
            hook = failed["said"]
        else:
            if field := _FIELD.fullmatch(line):
                rows.append((field["name"], field["value"].strip()))
                info.lines.add(number)
            elif _OF_DOCKER.match(line) or _OF_PYXIS.fullmatch(line):
                part.beside.add(number)
            continue
        part.lines.add(number)
    if hook and not part:
        part.add(HOST, "hook", "warn", Fault.CONTAINER_ERROR, hook)
    info.found = _info(rows)
    return (*part.imported(), *(info.imported() if info.found else ()))


def _info(rows: list[tuple[str, str]]) -> dict[str, Json]:
    """Driver and GPUs; nothing where the line of the driver or a GPU's bus id is not there."""
    facts: dict[str, Json] = {}
    index: int | None = None
    name = uuid = ""
    for field, value in rows:
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
