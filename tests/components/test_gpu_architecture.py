"""The architecture of a GPU by what is known of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_health_checks import NVML, box, changed

from dgxcheck.components.device_facts import architecture
from dgxcheck.facts.missing import Json
from dgxcheck.xid.table import NAMES

GPU = "0000:47:00.0"
SILENT: Json = {"missing": "unrecorded"}


@pytest.mark.parametrize(
    ("capability", "name", "expected"),
    [
        ([7, 0], "x", "volta"), ([7, 5], "x", "turing"), ([8, 0], "x", "ampere"), ([8, 9], "x", "ada"),
        ([9, 0], "x", "hopper"), ([10, 3], "x", "blackwell"), ([12, 0], "x", "blackwell"), ([3, 7], "x", "kepler"),
        (SILENT, "NVIDIA H100 80GB HBM3", "hopper"), (SILENT, "Tesla V100-SXM2-16GB", "volta"),
        (SILENT, "NVIDIA GB200", "blackwell"),
    ],
)  # fmt: skip
def test_what_nvml_does_not_say_follows_from_capability_or_name(
    capability: Json, name: str, expected: str, tmp_path: Path
) -> None:
    facts = {"Architecture": SILENT, "CudaComputeCapability": capability, "Name": name}
    spec = changed(tmp_path, {f"{NVML}{what} {GPU}": fact for what, fact in facts.items()}, base="dgx-a100")
    assert architecture(box(spec), GPU) == NAMES[expected]


def test_of_a_board_that_nobody_knows_there_is_none(tmp_path: Path) -> None:
    facts = {"Architecture": SILENT, "CudaComputeCapability": SILENT, "Name": "NVIDIA Something"}
    spec = changed(tmp_path, {f"{NVML}{what} {GPU}": fact for what, fact in facts.items()}, base="dgx-a100")
    assert architecture(box(spec), GPU) is None
