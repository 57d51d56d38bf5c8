"""Outputs that mention a fault that is none, or is over, and those beside them that do: what health finds of each."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import judged

FABRIC = """\
a-04:7:8 [0] NCCL INFO NCCL_MNNVL_CLIQUE_ID set by environment to 3.
a-04:7:8 [0] NCCL INFO MNNVL busId 0x801000 fabric UUID 3143b15b.28cc9b54 cliqueId 0x3 state 3 healthMask 0xaa
"""
EXPECTED: dict[str, tuple[str, tuple[str, ...]]] = {
    "a clique of NCCL's settings": (FABRIC, ()),
}
"""By text: of each cause severity, faults and first step."""


@pytest.mark.parametrize("name", EXPECTED)
def test_a_text(name: str, tmp_path: Path) -> None:
    text, causes = EXPECTED[name]
    file = tmp_path / "text.txt"
    file.write_text(text)
    _, found = judged(str(file))
    shown = tuple(f"{each['severity']} {' '.join(each['faults'])} {each['actions'][0]['action']}"
                  for each in found["causes"])  # fmt: skip
    assert shown == causes
    assert [each["id"] for each in found["findings"] if each["status"] == "unknown"] == []
