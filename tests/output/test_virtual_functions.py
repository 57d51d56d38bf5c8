"""A host that lends virtual functions of its adapters: none is a fault, and in a picture their adapter counts them."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from checkout import ROOT
from seam import run

DEVICES, CLASS, BDF, NAME = "/sys/bus/pci/devices", "/sys/class/infiniband", "0000:05:00.0", "mlx5_0"


@pytest.fixture
def box(tmp_path: Path) -> str:
    """A DGX-1 whose first HCA has two of them beside itself."""
    whole = json.loads((ROOT / "fixtures" / "dgx-1-v100.json").read_text(encoding="utf-8"))
    facts: dict[str, Any] = whole["facts"]
    links, names = facts[DEVICES]["link"], facts[CLASS]["names"]
    of_device = [key for key in facts if key.startswith(f"{CLASS}/{NAME}")]
    for number in (1, 2):
        bdf, name = f"{BDF[:-1]}{number}", f"mlx5_{3 + number}"
        links[bdf] = links[BDF].replace(BDF, bdf)
        facts[DEVICES]["names"].append(bdf)
        own = copy.deepcopy(facts[f"{DEVICES}/{BDF}"])
        own["link"] = {**own.get("link", {}), "physfn": f"../{BDF}"}
        del own["data"]
        facts[f"{DEVICES}/{bdf}"] = own
        names.append(name)
        for key in of_device:
            facts[key.replace(NAME, name)] = json.loads(json.dumps(facts[key]).replace(BDF, bdf))
    (tmp_path / "box.json").write_text(json.dumps(whole))
    return str(tmp_path / "box.json")


def test_in_a_picture_the_adapter_counts_them(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    for form in ("svg", "dot"):
        drawn = run(capsys, "topo", "--format", form, "--from", box).out
        assert "mlx5_0 +2 VF" in drawn
        assert not {"mlx5_4", "mlx5_5"} & {*drawn.replace("<", " ").replace('"', " ").split()}


def test_in_tree_and_matrix_they_stand_beside_it(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    tree = run(capsys, "topo", "--tree", "--from", box).out.splitlines()
    places = [next(number for number, line in enumerate(tree) if name in line) for name in (NAME, "mlx5_4", "mlx5_5")]
    assert places == [*range(places[0], places[0] + 3)]
    matrix = run(capsys, "topo", "-m", "--from", box).out.splitlines()
    assert len({line.split()[1] for line in matrix if line.split()[:1] in ([NAME], ["mlx5_4"], ["mlx5_5"])}) == 1


def test_none_of_them_is_a_fault(box: str, capsys: pytest.CaptureFixture[str]) -> None:
    done = run(capsys, "health", "--from", box)
    assert (done.code, done.out.splitlines()[0][:4]) == (0, "PASS")
    assert done.out.count("mlx5_0, mlx5_4, mlx5_5") == 2
