"""What programs say of CUDA: collect_env, errors of PyTorch and others.

PyTorch's and vLLM's ``collect_env``: the driver and the GPUs; lscpu and the matrix in it have readers of their own.

Forms: https://github.com/pytorch/pytorch/blob/main/torch/utils/collect_env.py, vLLM pads the names and draws headings.

Errors of CUDA as PyTorch, JAX, TensorFlow, vLLM and NVIDIA's samples print them.

Numbers, names and texts: CUresult of the CUDA driver API
(https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html) and cudaError of the runtime API.
"""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import nameless, unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record
from dgxcheck.facts.tool_outputs import Outcome
from dgxcheck.lazy_pattern import LazyPattern, caseless_pattern
from dgxcheck.readers.listing import INDEX
from dgxcheck.readers.model import HOST, Imported, ToolPart
from dgxcheck.readers.values import gpu, numbered
from dgxcheck.readers.wording import any_of, fault_of, is_entered, outcome_of, rows, wordings

_BEGIN = LazyPattern(r"Collecting environment information\.{3}|PyTorch version {0,20}: .{0,60}")
_DRIVER = LazyPattern(r"Nvidia driver version {0,20}: (?P<version>\d{3}\.\d{2,3}(?:\.\d{2,3})?)")
_MODELS = LazyPattern(
    r"GPU models and configuration {0,20}: ?(?:GPU (?P<gpu>\d{1,3}): (?P<name>[A-Za-z][^:()]{2,80}?)"
    r"(?: \(UUID: .{1,60}\))?)?"
)
_MODEL = LazyPattern(r"GPU (?P<gpu>\d{1,3}): (?P<name>[A-Za-z][^:()]{2,80}?)")
_CUDA = LazyPattern(r"Is CUDA available {0,20}: (?P<answer>True|False)")
_BUILT = LazyPattern(r"CUDA used to build PyTorch {0,20}: (?P<version>\d{1,2}\.\d{1,2}|\S.{0,40})")
_REST = caseless_pattern(any_of("host/lines", "collect_env"))


def read_collect_env(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The driver's version, the model of each GPU, and whether PyTorch can use them."""
    part = ToolPart("collect_env")
    names: dict[int, str] = {}
    begun = listing = False
    available = built = ""
    for number, line in numbered(lines):
        begun = begun or _BEGIN.fullmatch(line) is not None
        if not begun or not line:
            listing = False
        elif driver := _DRIVER.fullmatch(line):
            part.found["nvml nvmlSystemGetDriverVersion"] = driver["version"]
            part.lines.add(number)
        elif models := _MODELS.fullmatch(line) or (_MODEL.fullmatch(line) if listing else None):
            listing = True
            if (index := gpu(models["gpu"] or "")) is not None:
                names.setdefault(index, models["name"])
            part.lines.add(number)
        elif cuda := _CUDA.fullmatch(line):
            available = cuda["answer"]
            part.lines.add(number)
        elif made := _BUILT.fullmatch(line):
            built = made["version"]
            part.beside.add(number)
        elif _BEGIN.fullmatch(line) or _REST.fullmatch(line):
            part.beside.add(number)
            listing = False
    part.found |= {f"{INDEX} {index}": unplaced(index) for index in sorted(names)}
    part.found |= {f"nvml nvmlDeviceGetName {unplaced(index)}": name for index, name in names.items()}
    if available == "False" and names and built[:1].isdigit():
        part.add(HOST, "cuda", "unknown", Fault.TEST_FAILED, "PyTorch cannot use CUDA although the driver lists GPUs")
    return part.imported()


class CudaError(Record, kw_only=False):
    number: int
    names: str
    """Of the driver API and of the runtime API, without what they begin with."""
    texts: tuple[str, ...]
    """As cudaGetErrorString gives it, and programs that word it otherwise."""
    outcome: Outcome
    fault: FaultKind | None
    of_gpu: bool


ERRORS = tuple(
    CudaError(
        int(row["number"]), row["names"], tuple(row["text"].split("|")), outcome_of(row), fault_of(row),
        bool(row["of_gpu"]),
    )
    for row in rows("host/cuda_errors")
)
_SIGN = caseless_pattern(r"cuda|cuInit|-> |burn-drv|GPUassert: ")
"""In every line about a CUDA error; searched for first, because it is cheap."""
_ERROR_LINE = caseless_pattern(any_of("host/lines", "error of CUDA"))
_BY_TEXT = tuple(
    (error, caseless_pattern(rf"\b(?:{'|'.join(map(re.escape, error.texts))})\b")) for error in ERRORS
)
_BY_NAME = tuple((error, LazyPattern(rf"\b(?:CUDA_ERROR_|cudaError)(?:{error.names})\b")) for error in ERRORS)
_DSO = LazyPattern(r"does not match DSO version")
"""Of TensorFlow and XLA: the module that is loaded is of another version than libcuda."""
_NUMBER = caseless_pattern(
    r"(?:CUDA error|CUDA runtime error|CUDA driver error|\bcode ?=|\breturned|\bError|init failure:)"
    r" \(?(?P<number>\d{1,3})\b(?![-:/.]\d)\)?"
)
_GPU = caseless_pattern(r"\b(?:cuda:|GPU |device |gpu_id=)(?P<gpu>\d{1,2})\b(?![.:]\d)")
_AROUND = LazyPattern(any_of("host/lines", "errors of CUDA"))
"""What Python and PyTorch print around such an error."""
_FILE = LazyPattern(r"\s{0,40}File \"")
"""Before a line of code."""
_RUNS_ON = LazyPattern(r"NOTE: CUDA Minor Version Compatibility mode ENABLED\.")
"""Of images of NGC, where CUDA of the image is newer than the driver's: forward compatibility alone is not to be had.
https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html"""
_RUNS_ON_LINES = 8
_RUNS_ON_TEXT = LazyPattern(any_of("host/lines", "CUDA of a container"))
_RUNS_ON_WHY = LazyPattern(r"\[\[.{3,160} cuInit\(\)=\d{1,4}\]\]")
_OWN_READER = LazyPattern(r"NCCL |nvidia-container-cli|Detected non-NVML platform|\[[0-9A-F]{4,16}\] 0x[0-9a-f]{2} -> ")
"""The last: of opensm, whose sweeps name a ``subnet initialization error 0``."""
_NOT_RUNNING = LazyPattern(r"kernel driver does not appear to be running on this host")
"""Of TensorFlow and XLA: there is no /proc/driver/nvidia."""
_NO_LIBRARY = wordings("host/results", "CUDA")
"""Of go-nvml, and so of device plugin, DRA driver and DCGM exporter; of the dynamic linker."""


def read_cuda_errors(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Each error by what it is about: a GPU, the services and driver of the host, or the program itself."""
    part = ToolPart("CUDA")
    banner = range(0)
    for number, text in numbered(lines):
        if not text:
            continue
        if _RUNS_ON.fullmatch(text):
            banner = range(number, number + _RUNS_ON_LINES)
        own = not _OWN_READER.search(text)
        if number in banner and _RUNS_ON_WHY.fullmatch(text):
            part.add(HOST, "compatibility", "note", None, f"a container runs on without forward compatibility: {text}")
        elif number in banner and (number == banner.start or _RUNS_ON_TEXT.fullmatch(text)):
            part.beside.add(number)
            continue
        elif own and is_entered(part, _NO_LIBRARY, number, text):
            pass
        elif _NOT_RUNNING.search(text):
            part.add(HOST, "driver", "warn", Fault.DRIVER_NOT_LOADED, "CUDA finds no NVIDIA driver that runs here")
        elif error := error_in(text) if own and _SIGN.search(text) else None:
            named = _GPU.search(text)
            subject = HOST if not error.of_gpu else f"GPU{int(named['gpu'])}" if named else nameless(0)
            name = f"error-{error.number}"
            part.add(subject, name, error.outcome, error.fault, f"error {error.number}: {error.texts[0]}")
        else:
            around = _AROUND.fullmatch(text) or (number - 1 in part.beside and _FILE.match(lines[number - 1]))
            part.beside.update([number] if around else [])
            continue
        part.lines.add(number)
    return part.imported()


def error_in(text: str) -> CudaError | None:
    """The error of CUDA that a line names; None where it names none that is known."""
    if not _ERROR_LINE.search(text):
        return None
    for error, form in (*_BY_NAME, *_BY_TEXT):
        if form.search(text):
            return error
    match = _NUMBER.search(text)
    number = 803 if _DSO.search(text) else int(match["number"]) if match else None
    return next((error for error in ERRORS if error.number == number), None)


def error_of_host(text: str) -> CudaError | None:
    """What an error of CUDA says of the host when nothing ran on any GPU.

    None for an error of a GPU itself, of memory or program, and where the text names none that is known.
    """
    error = error_in(text)
    of_others = error is None or error.of_gpu or error.outcome == "note" or error.fault is Fault.PROGRAM_CRASHED
    return None if of_others else error
