"""Every published output of nvidia-smi: imported without a line left over, shown and judged without an accident."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from seam import run

FOLDER = next(
    (up / "shared" / "recordings" for up in Path(__file__).parents if (up / "shared" / "recordings").is_dir()),
    Path("none"),
)
pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="no recordings beside this checkout")
FILES = sorted(path for kind in ("topo", "p2p", "nvlink") for path in (FOLDER / kind).glob("*.txt"))
ALL_TO_ALL_18 = ["dgx-h100", "dgx-b200"]
"""One graph of two generations, which a matrix does not tell."""
GRAPHS = {
    "dgx1-p100-sheffield": ["dgx-1-p100"],
    "dgx1-v100-ucxpy": ["dgx-1-v100"],
    "v100-8x-node-pytorch-rpc": ["dgx-1-v100"],
    "v100-8x-vm-phb-likejazz": ["dgx-1-v100"],
    "v100-sxm2-32gb-8x-nic0-newdriver": ["dgx-1-v100"],
    "v100-sxm2-8x-gold5118-dlperf": ["dgx-1-v100"],
    "v100-sxm2-8x-vm-nic0-gpu45": ["dgx-1-v100"],
    "a100-8x-nonic-mleng": ["dgx-a100"],
    "dgx-a100-10nic-legend": ["dgx-a100"],
    "dgx-h100-12nic-dgx052-cut": ALL_TO_ALL_18,
    "h100-8x-nonic-104t-mleng": ALL_TO_ALL_18,
    "h100-8x-nonic-52c-mleng": ALL_TO_ALL_18,
    "b300-8x-9nic-bond-sglang": ALL_TO_ALL_18,
}
"""The machines whose NVLink graph a matrix equals; every other equals none."""
POSSIBLE = {
    "gist-ashwin-dgx1-v100-soc-2017-flat-cut": ["dgx-1-v100"],
    "dgx2-16x-v100-nccltests78-cut": ["dgx-2"],
    "b200-8x-4numa-vm-unsloth3872-cut": ALL_TO_ALL_18,
}
"""Of matrices without some of their rows: what the others allow."""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_published_output_is_read_whole(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    box = str(tmp_path / "box.json")
    done = run(capsys, "import", str(path), "-o", box)
    assert done.code == 0, done.err
    assert "Traceback" not in done.err
    shown = run(capsys, "topo", "--format", "json", "--from", box)
    assert shown.err == ""
    document: dict[str, Any] = json.loads(shown.out)
    graph = document["nvlink_graph"]
    assert (graph["equals"] if graph else []) == GRAPHS.get(path.stem, [])
    assert document.get("nvlink_graph_possible", []) == POSSIBLE.get(path.stem, [])
    assert run(capsys, "topo", "--from", box).err == ""
    health = run(capsys, "health", "--format", "json", "--from", box)
    statuses = {finding["status"] for finding in json.loads(health.out)["findings"]}
    assert statuses <= {"pass", "skip", "unknown"}


def test_every_output_is_here() -> None:
    assert len(FILES) >= 54
    assert {*GRAPHS, *POSSIBLE} <= {path.stem for path in FILES}


@pytest.mark.parametrize("box", ["dgx-1-p100", "dgx-1-v100"])
def test_a_matrix_of_such_a_box_agrees_with_it(box: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = {"dgx-1-p100": "dgx1-p100-sheffield.txt", "dgx-1-v100": "dgx1-v100-ucxpy.txt"}[box]
    out = str(tmp_path / "box.json")
    assert run(capsys, "import", str(FOLDER / "topo" / file), "--onto", box, "-o", out).code == 0
    shown = run(capsys, "topo", "--from", out)
    assert shown.code == 0
    assert "The imported nvidia-smi topo" not in shown.out
