"""Errors of CUDA as PyTorch, JAX, TensorFlow, vLLM and NVIDIA's samples print them.

Numbers, names and texts: CUresult of the CUDA driver API
(https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__TYPES.html) and cudaError of the runtime API.
"""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import nameless
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.record import Record
from dgxcheck.facts.tool_report import Outcome
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded

TOOL = "CUDA"


class CudaError(Record, kw_only=False):
    number: int
    names: str
    """Of the driver API and of the runtime API, without what they begin with."""
    text: str
    """As cudaGetErrorString gives it."""
    outcome: Outcome
    fault: FaultKind | None
    of_gpu: bool = False


_ERRORS = (
    CudaError(35, "InsufficientDriver", "CUDA driver version is insufficient for CUDA runtime version", "warn",
              Fault.DRIVER_MISMATCH),
    CudaError(46, "DevicesUnavailable|DEVICE_UNAVAILABLE",
              "all CUDA-capable devices are busy or unavailable", "unknown", None),
    CudaError(98, "InvalidDeviceFunction", "invalid device function", "warn", Fault.PROGRAM_CRASHED),
    CudaError(100, "NO_DEVICE|NoDevice", "no CUDA-capable device is detected", "warn", Fault.NOT_READY),
    CudaError(101, "INVALID_DEVICE|InvalidDevice", "invalid device ordinal", "warn", Fault.PROGRAM_CRASHED),
    CudaError(200, "INVALID_IMAGE|InvalidKernelImage", "device kernel image is invalid", "warn", Fault.PROGRAM_CRASHED),
    CudaError(209, "NO_BINARY_FOR_GPU|NoKernelImageForDevice",
              "no kernel image is available for execution on the device", "warn", Fault.PROGRAM_CRASHED),
    CudaError(214, "ECC_UNCORRECTABLE|ECCUncorrectable", "uncorrectable ECC error encountered", "fail",
              Fault.ECC_UNCORRECTED, True),
    CudaError(220, "NVLINK_UNCORRECTABLE|NvlinkUncorrectable",
              "uncorrectable NVLink error detected during the execution", "fail", Fault.NVLINK_ERRORS, True),
    CudaError(226, "CONTAINED|Contained", "Invalid access of peer GPU memory over nvlink or a hardware error", "fail",
              Fault.NVLINK_ERRORS, True),
    CudaError(700, "ILLEGAL_ADDRESS|IllegalAddress", "an illegal memory access was encountered", "warn",
              Fault.PROGRAM_CRASHED),
    CudaError(701, "LAUNCH_OUT_OF_RESOURCES|LaunchOutOfResources", "too many resources requested for launch", "warn",
              Fault.PROGRAM_CRASHED),
    CudaError(710, "ASSERT|Assert", "device-side assert triggered", "warn", Fault.PROGRAM_CRASHED),
    CudaError(715, "ILLEGAL_INSTRUCTION|IllegalInstruction", "an illegal instruction was encountered", "warn",
              Fault.PROGRAM_CRASHED),
    CudaError(716, "MISALIGNED_ADDRESS|MisalignedAddress", "misaligned address", "warn", Fault.PROGRAM_CRASHED),
    CudaError(719, "LAUNCH_FAILED|LaunchFailure", "unspecified launch failure", "warn", Fault.PROGRAM_CRASHED),
    CudaError(802, "SYSTEM_NOT_READY|SystemNotReady", "system not yet initialized", "fail", Fault.FABRIC_MANAGER_DOWN),
    CudaError(803, "SYSTEM_DRIVER_MISMATCH|SystemDriverMismatch",
              "system has unsupported display driver / cuda driver combination", "fail", Fault.DRIVER_MISMATCH),
    CudaError(804, "COMPAT_NOT_SUPPORTED_ON_DEVICE|CompatNotSupportedOnDevice",
              "forward compatibility was attempted on non supported HW", "fail", Fault.DRIVER_MISMATCH),
    CudaError(999, "UNKNOWN|Unknown", "unknown error", "warn", Fault.DRIVER_FAILED),
)  # fmt: skip
_SIGN = re.compile(r"cuda|-> ", re.IGNORECASE)
"""In every line about a CUDA error; searched for first, because it is cheap."""
_SAID = re.compile(
    r"(?:CUDA(?: driver| runtime)? (?:error|failure)|cuda\w{3,60}\(?\)? (?:returned|failed)"
    r"|Unexpected error from cuda\w{3,40}|Error \d{3}|-> |CUDA Error|cudaError|CUDA_ERROR_)",
    re.IGNORECASE,
)
_BY_TEXT = tuple((error, re.compile(rf"\b{re.escape(error.text)}\b", re.IGNORECASE)) for error in _ERRORS)
_BY_NAME = tuple((error, re.compile(rf"\b(?:CUDA_ERROR_|cudaError)(?:{error.names})\b")) for error in _ERRORS)
_NUMBER = re.compile(
    r"(?:CUDA error|CUDA runtime error|CUDA driver error|\bcode ?=|\breturned|\bError) \(?(?P<number>\d{1,3})\b\)?",
    re.IGNORECASE,
)
_GPU = re.compile(r"\b(?:cuda:|GPU |device |gpu_id=)(?P<gpu>\d{1,2})\b(?![.:]\d)", re.IGNORECASE)
_AROUND = re.compile(
    r"Traceback \(most recent call last\):|File \"[^\"]{1,300}\", line \d{1,7}, in .{1,200}"
    r"|(?:CUDA kernel errors might be asynchronously|For debugging consider passing CUDA_LAUNCH_BLOCKING"
    r"|Compile with `?TORCH_USE_CUDA_DSA|Search for `?cudaError|Device-side assert).{0,300}"
)
"""What Python and PyTorch print around such an error."""
_FILE = re.compile(r"\s{0,40}File \"")
"""Before a line of code."""
_NCCL = "NCCL "
"""Its own log has a reader."""


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Each error by what it is about: a GPU, the services and driver of the host, or the program itself."""
    reports = Reports(TOOL)
    understood: set[int] = set()
    around: set[int] = set()
    for number, line in enumerate(bounded(lines)):
        text = line.strip()
        if not text:
            continue
        error = _error(text) if _NCCL not in text and _SIGN.search(text) else None
        if error is not None:
            named = _GPU.search(text)
            subject = HOST if not error.of_gpu else f"GPU{int(named['gpu'])}" if named else nameless(0)
            reports.add(subject, f"error-{error.number}", error.outcome, error.fault, _spelled(error))
            understood.add(number)
        elif _AROUND.fullmatch(text) or (number - 1 in around and _FILE.match(lines[number - 1])):
            around.add(number)
    if not understood:
        return ()
    return (Imported(tool=TOOL, facts=reports.facts(), understood=frozenset(understood | around)),)


def _error(text: str) -> CudaError | None:
    if not _SAID.search(text):
        return None
    for forms in (_BY_NAME, _BY_TEXT):
        for error, form in forms:
            if form.search(text):
                return error
    match = _NUMBER.search(text)
    return next((error for error in _ERRORS if match is not None and error.number == int(match["number"])), None)


def error_of_host(text: str) -> CudaError | None:
    """What an error of CUDA says of the host when nothing ran on any GPU, without a fault for a busy GPU.

    None for an error of a GPU itself, of memory or program, and where the text names none that is known.
    """
    error = _error(text)
    return None if error is None or error.of_gpu or error.fault is Fault.PROGRAM_CRASHED else error


def _spelled(error: CudaError) -> str:
    return f"error {error.number}: {error.text}"
