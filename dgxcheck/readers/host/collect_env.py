"""PyTorch's and vLLM's ``collect_env``: the driver and the GPUs; lscpu and the matrix in it have readers of their own.

Forms: https://github.com/pytorch/pytorch/blob/main/torch/utils/collect_env.py, vLLM pads the names and draws headings.
"""

from __future__ import annotations

import re

from dgxcheck.facts.bdf import unplaced
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import Json
from dgxcheck.readers.listing import INDEX
from dgxcheck.readers.model import Imported
from dgxcheck.readers.reports import HOST, Reports
from dgxcheck.readers.values import bounded, gpu

TOOL = "collect_env"
_BEGIN = re.compile(r"Collecting environment information\.{3}|PyTorch version {0,20}: .{0,60}")
_DRIVER = re.compile(r"Nvidia driver version {0,20}: (?P<version>\d{3}\.\d{2,3}(?:\.\d{2,3})?)")
_MODELS = re.compile(
    r"GPU models and configuration {0,20}: ?(?:GPU (?P<gpu>\d{1,3}): (?P<name>[A-Za-z][^:()]{2,80}?)"
    r"(?: \(UUID: .{1,60}\))?)?"
)
_MODEL = re.compile(r"GPU (?P<gpu>\d{1,3}): (?P<name>[A-Za-z][^:()]{2,80}?)")
_CUDA = re.compile(r"Is CUDA available {0,20}: (?P<answer>True|False)")
_BUILT = re.compile(r"CUDA used to build PyTorch {0,20}: (?P<version>\d{1,2}\.\d{1,2}|\S.{0,40})")
_REST = re.compile(
    r"(?:Is debug build|ROCM used to build PyTorch|OS|GCC version|Clang version|CMake version|Libc version"
    r"|Python (?:version|platform)|CUDA runtime version|CUDA_MODULE_LOADING set to|cuDNN version"
    r"|HIP runtime version|MIOpen runtime version|Is XNNPACK available|Is XPU available|Caching allocator config"
    r"|Versions of relevant libraries|ROCM Version|Neuron SDK Version|vLLM (?:Version|Build Flags)|CUDA Archs"
    r"|Nvidia driver version|Neuron|GPU Topology|CPU) {0,24}:.{0,400}|\[(?:pip3?|conda)\] .{0,160}|uv is set"
    r"|={20,40}|(?:System|PyTorch|CPU|CUDA / GPU|vLLM) Info|Python Environment|Environment Variables"
    r"|/usr/\S{0,120}/libcudnn\S{0,60}|(?:Versions of relevant libraries)|[A-Z][A-Z0-9_]{3,60}=.{0,300}",
    re.IGNORECASE,
)


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """The driver's version, the model of each GPU, and whether PyTorch can use them."""
    facts: dict[str, Json] = {}
    names: dict[int, str] = {}
    understood: set[int] = set()
    rest: set[int] = set()
    begun = listing = False
    available = built = ""
    for number, raw in enumerate(bounded(lines)):
        line = raw.strip()
        begun = begun or _BEGIN.fullmatch(line) is not None
        if not begun or not line:
            listing = False
        elif driver := _DRIVER.fullmatch(line):
            facts["nvml nvmlSystemGetDriverVersion"] = driver["version"]
            understood.add(number)
        elif models := _MODELS.fullmatch(line) or (_MODEL.fullmatch(line) if listing else None):
            listing = True
            index = gpu(models["gpu"] or "")
            if index is not None:
                names.setdefault(index, models["name"])
            understood.add(number)
        elif cuda := _CUDA.fullmatch(line):
            available = cuda["answer"]
            understood.add(number)
        elif made := _BUILT.fullmatch(line):
            built = made["version"]
            rest.add(number)
        elif _BEGIN.fullmatch(line) or _REST.fullmatch(line):
            rest.add(number)
            listing = False
    if not understood:
        return ()
    facts |= {f"{INDEX} {index}": unplaced(index) for index in sorted(names)}
    facts |= {f"nvml nvmlDeviceGetName {unplaced(index)}": name for index, name in names.items()}
    reports = Reports(TOOL)
    if available == "False" and names and built[:1].isdigit():
        text = "PyTorch cannot use CUDA although the driver lists GPUs"
        reports.add(HOST, "cuda", "unknown", Fault.TEST_FAILED, text)
    return (Imported(tool=TOOL, facts=facts | reports.facts(), understood=frozenset(understood | rest)),)
