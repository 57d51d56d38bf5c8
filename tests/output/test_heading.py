"""The heading of ``health``: a reference machine's title only of a box that is one, else the GPUs that were read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from seam import run

from dgxcheck.assessment import assess
from dgxcheck.facts.missing import Json
from dgxcheck.output.health.overview import machine

PRODUCT = "text /sys/class/dmi/id/product_name"
GONE: Json = {"missing": "absent", "detail": "No such file or directory"}
READ = "8 x Tesla V100-SXM2-16GB, driver 550.127.05"
WHOLE = f"NVIDIA DGX-1 with eight V100: {READ}"


@pytest.mark.parametrize(
    ("facts", "due"),
    [
        ({}, WHOLE),
        ({PRODUCT: GONE}, WHOLE),
        ({PRODUCT: "a server\n"}, READ),
        ({PRODUCT: GONE, "text /sys/bus/pci/devices/0000:06:00.0/numa_node": "1\n"}, READ),
    ],
    ids=["named by its firmware", "wired like it", "of another maker", "wired otherwise"],
)
def test_the_title_is_of_the_machine_itself(facts: dict[str, Json], due: str, tmp_path: Path) -> None:
    path = tmp_path / "case.json"
    document = {"schema": "dgxcheck/overlay/1", "base": "dgx-1-v100", "facts": facts}
    path.write_text(json.dumps(document), encoding="utf-8")
    found = assess(str(path))
    assert machine(found) == due
    assert found.choice is not None
    assert (found.choice.profile.name, found.choice.how) == ("dgx-1-v100", "gpus" if facts else "product")


@pytest.mark.parametrize("number", [1, 4, 8])
def test_a_list_of_cards_names_no_machine(number: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As many cards as a DGX has, whose wiring is not known, are no DGX."""
    path = tmp_path / "lspci.txt"
    cards = [
        f"{0x19 + each:02x}:00.0 3D controller [0302]: NVIDIA Corporation GH100 [10de:2330]" for each in range(number)
    ]
    path.write_text("\n".join((*cards, "")), encoding="utf-8")
    out = run(capsys, "health", "--from", str(path)).out
    assert out.splitlines()[2] == f"{number} x H100 80GB HBM3"
    assert "against dgx-h100 (by GPU model only)" in out
