"""Monitors of GPUs whose screens hold less than the dumps that dgxcheck reads, and other exporters' metrics."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dgxcheck.readers.known_output import Form, recognised
from dgxcheck.readers.model import Imported

_DUMP = "nvidia-smi -q"
_GPUSTAT = (r"\[\d{1,2}\] .{2,60} \| {1,4}(?:\d{1,3}|\?\?)['°] ?C.{0,40}\| {1,8}[\d?]{1,6} / {1,8}[\d?]{1,6} MB"
            r" \|.{0,300}")  # fmt: skip
_GPUSTAT_HEAD = r"\S{1,64} {2,40}[A-Z][a-z]{2} [A-Z][a-z]{2} .{10,30} {1,4}\d{3}\.[\d.]{2,12}"
_NVTOP = (r"Device \d{1,2} ?\[.{2,60}\] PCIe GEN ?\d@ ?\d{1,2}x.{0,100}"
          r"|GPU {1,4}\d{1,5}MHz MEM {1,4}\d{1,5}MHz TEMP {1,4}\d{1,3}°C.{0,120}")  # fmt: skip
_METRIC = r"(?:nvidia_smi|nvidia_gpu|nvml)_\w{2,80}(?:\{.{0,2000}\})? \S{1,40}"
_COMMENT = r"# (?:HELP|TYPE) (?:nvidia_smi|nvidia_gpu|nvml)_\w{2,80} .{1,300}"
_FORMS: Sequence[Form] = (
    Form("gpustat", re.compile(f"{_GPUSTAT}|{_GPUSTAT_HEAD}"), re.compile(_GPUSTAT), instead=_DUMP),
    Form("nvitop", re.compile(r"[│|] ?NVITOP \d.{1,20}Driver Version: .{1,100}"), re.compile(r"[│|╞├╒╘+].{3,300}"),
         instead=_DUMP),
    Form("nvtop", re.compile(_NVTOP), re.compile(_NVTOP), instead=_DUMP),
    Form("metrics of a GPU exporter", re.compile(f"{_METRIC}|{_COMMENT}"), re.compile(f"{_METRIC}|{_COMMENT}"),
         instead=_DUMP),
)  # fmt: skip


def read(lines: tuple[str, ...]) -> tuple[Imported, ...]:
    """Which lines are theirs, without facts."""
    return recognised(lines, _FORMS)
