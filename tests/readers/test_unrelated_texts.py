"""A text of no known tool gives no fact and no tool's name; a part of a tool's output gives the name of that tool."""

from __future__ import annotations

import pytest
from unrelated_texts import TEXTS

from dgxcheck.assessment.importing.texts import text_of
from dgxcheck.assessment.importing.unread import nearest
from dgxcheck.readers.any_text import READERS


@pytest.mark.parametrize("name", TEXTS)
def test_nothing_is_read_or_guessed(name: str) -> None:
    lines = text_of(name, tuple(TEXTS[name].splitlines())).layout.lines
    assert [output for reader in READERS for output in reader(lines)] == []
    assert nearest(lines) == ""


@pytest.mark.parametrize(
    ("line", "tool"),
    [
        ("0, Tesla V100-SXM2-16GB, 34, 50.10 W, 16384 MiB", "nvidia-smi --query-gpu"),
        ("Tesla V100-SXM2-16GB, 34, 0", "nvidia-smi --query-gpu"),
        ("GPU1    NV2      X      PIX     0-19", "nvidia-smi topo -m"),
        ("    Persistence Mode                      : Enabled", "nvidia-smi -q"),
        ("         Link 3: 25.781 GB/s", "nvidia-smi nvlink"),
        ("| N/A   34C    P0    50W / 300W |      0MiB / 16384MiB |      0%      Default |", "nvidia-smi"),
        ("\t\tLnkSta:\tSpeed 8GT/s, Width x16", "lspci -vv"),
        ("============ ROCm System Management Interface ============", "rocm-smi or amd-smi"),
        ("bolt, 3 W, 2", ""),
        ("the rule of SYS NODE PHB", ""),
    ],
)
def test_part_of_an_output_names_its_tool(line: str, tool: str) -> None:
    guess = nearest([line])
    assert guess.startswith(f"most like the output of {tool}, but without ") if tool else guess == ""
