"""Lines of drivers from R570, DCGM 4, NCCL 2.27 and what runs beside them, alone: what health finds, and its first
step."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import of_text

from dgxcheck.assessment.importing.texts import lines as lines_of
from dgxcheck.readers.any_text import outputs, unread
from dgxcheck.readers.layout.undo import undone

TO_RESET = """\
GPU 00000000:9A:00.0
    Product Name                                       : NVIDIA A100-SXM4-80GB
    GPU Recovery Action                                : Reset
    ECC Errors
        Channel Repair Pending                         : GPU requires reset
        TPC Repair Pending                             : GPU requires reset
"""
"""Fields that NVML refuses with NVML_ERROR_RESET_REQUIRED; the GPU is on the bus."""
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "nvidia-smi -q of a GPU to be reset": (TO_RESET, ("fail reset-required drain",)),
    "the same without the action": (TO_RESET.replace("GPU Recovery", "Other"),
                                    ("fail reset-required drain",)),
    "no handle": ("Unable to determine the device handle for GPU0: 0000:9A:00.0: GPU requires reset\n",
                  ("fail reset-required drain",)),
    "a container": ("nvidia-container-cli: detection error: nvml error: gpu requires reset\n",
                    ("fail reset-required drain",)),
    "kubelet": ("Warning  UnexpectedAdmissionError  12s  kubelet  Allocate failed due to rpc error: code = Unknown desc"
                " = failed to get nvlink state: GPU requires reset, which is unexpected\n",
                ("warn reset-required inspect",)),
}  # fmt: skip
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    text, causes = EXPECTED[name]
    assert of_text(text, tmp_path)[0] == causes
    lines = lines_of(text.encode(), "f")
    layout = undone(lines)
    left = unread(lines, layout, [output for _, output in outputs(layout)])
    assert [lines[number] for number in left] == []
