"""Outputs that name GPUs without listing those of the machine, GPUs of other vendors, and Jetson."""

from __future__ import annotations

from pathlib import Path

import pytest

from dgxcheck.assessment.health import assess
from dgxcheck.assessment.machine import examine
from dgxcheck.assessment.request import Request
from dgxcheck.facts.missing import BadInput

RANKS = """\
# Using devices
#   Rank  0 uses device  0 [0x06] Tesla K80
#   Rank  1 uses device  1 [0x07] Tesla K80

#                                                       out-of-place                    in-place
#      bytes             N    type      op  root    time  algbw  busbw      res     time  algbw  busbw      res
    10485760      10485760    char     sum    0    1.500   6.70   6.70    0e+00    1.600   6.60   6.60    0e+00
"""
LOG = "[   10.000001] NVRM: Xid (PCI:0000:06:00): 31, pid=1, name=a, Ch 00000001, MMU Fault\n"
TABLE = """\
|   0  Orin (nvgpu)                  N/A  | N/A              N/A |                  N/A |
| N/A   N/A  N/A               N/A /  N/A | Not Supported        |     N/A          N/A |
"""
RULE = "+-----------------------------------------+----------------------+----------------------+\n"
HEAD = """\
| NVIDIA-SMI 540.2.0                Driver Version: N/A          CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
"""
RELEASE = (
    "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref, EABI: aarch64\n"
)
AMD = """\
0c:00.0 Processing accelerators [1200]: Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram [1002:74a1]
22:00.0 Processing accelerators [1200]: Advanced Micro Devices, Inc. [AMD/ATI] Aqua Vanjaram [1002:74a1]
"""


def written(folder: Path, text: str) -> str:
    path = folder / "text.txt"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize("text", [RANKS, RANKS + LOG, LOG], ids=["ranks", "ranks and log", "log"])
def test_gpus_that_are_named_are_no_inventory(text: str, tmp_path: Path) -> None:
    judged = assess(written(tmp_path, text), Request(profile="k80-x8"))
    (count,) = [found for found in judged.findings if found.id == "gpu.count"]
    assert count.status.value == "skip"
    assert not judged.causes or "slot" not in {cause.component.kind for cause in judged.causes}


TEGRASTATS = "04-28-2025 08:28:01 RAM 3679/15388MB (lfb 61x4MB) CPU [2%@729] GR3D_FREQ 0%@[305] NVDEC off"
"""https://github.com/henrygd/beszel/issues/286"""


@pytest.mark.parametrize(
    "text", [RULE + HEAD + TABLE + RULE, RELEASE, TEGRASTATS], ids=["nvidia-smi", "release file", "tegrastats"]
)
def test_jetson_is_refused_by_name(text: str, tmp_path: Path) -> None:
    path = written(tmp_path, text)
    for judge in (assess, examine):
        with pytest.raises(BadInput, match="Jetson is not supported"):
            judge(path)


def test_jetson_is_refused_on_the_machine_itself(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "sys/bus/pci/devices").mkdir(parents=True)
    (tmp_path / "etc/nv_tegra_release").write_text(RELEASE)
    for judge in (assess, examine):
        with pytest.raises(BadInput, match="Jetson is not supported"):
            judge(tmp_path)


def test_boards_of_other_vendors_are_named_and_not_judged(tmp_path: Path) -> None:
    judged = assess(written(tmp_path, AMD))
    assert judged.verdict.value == "unknown"
    (count,) = [found for found in judged.findings if found.id == "gpu.count"]
    assert "2 x 1002:74a1" in count.judgement.message
