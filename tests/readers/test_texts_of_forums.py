"""Outputs as people paste them in forums and issues, alone: what health finds, its first step, and that all is read."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import judged

from dgxcheck.assessment.importing.texts import lines as lines_of
from dgxcheck.readers.any_text import outputs, unread
from dgxcheck.readers.layout.undo import undone

WINDOWS = """\
PS C:\\Users\\a> nvidia-smi
Tue Mar 12 10:41:23 2024
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 546.12                 Driver Version: 546.12       CUDA Version: 12.3     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                     TCC/WDDM  | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  NVIDIA RTX A6000             WDDM  | 00000000:01:00.0  On |                  Off |
|  0%   35C    P8              17W / 300W |   1265MiB / 49140MiB |      3%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
|   1  Quadro RTX 8000               TCC  | 00000000:21:00.0 Off |                    2 |
| 33%   31C    P8              12W / 260W |      9MiB / 46080MiB |      0%      Default |
|                                         |                      |                  N/A |
+-----------------------------------------+----------------------+----------------------+
"""
SHORTENED = """\
3b:00.0 3D controller: NVIDIA Corporation GA100 [A100 PCIe 80GB] (rev a1)
\tControl: I/O- Mem+ BusMaster+ SpecCycle- MemWINV- VGASnoop- ParErr+ Stepping- SERR+ FastB2B- DisINTx-
\tKernel driver in use: nvidia
\t\tLnkCap:\tPort #0, Speed 16GT/s, Width x16, ASPM not supported
\t\tLnkSta:\tSpeed 16GT/s, Width x16
"""
"""Without the lines of its regions."""
STAGES = """\
-I- Stage                     Warnings   Errors     Comment
-I- Discovery                 0          0
-I- Speed / Width checks      0          2
"""
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "Windows": (WINDOWS, ("fail ecc-uncorrected drain",)),
    "lspci, shortened": (SHORTENED, ()),
    "ibdiagnet": (STAGES, ("warn port-slow inspect",)),
}
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    text, causes = EXPECTED[name]
    file = tmp_path / "text.txt"
    file.write_text(text)
    _, found = judged(str(file))
    shown = (f"{each['severity']} {' '.join(each['faults'])} {each['actions'][0]['action']}" for each in found["causes"])
    assert tuple(shown) == causes
    lines = lines_of(text.encode(), "f")
    layout = undone(lines)
    left = unread(lines, layout, [output for _, output in outputs(layout)])
    assert [lines[number] for number in left] == []
