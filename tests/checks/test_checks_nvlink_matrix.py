"""nvlink.matrix: what an imported matrix states is judged, alone and against the box that it was put on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from seam import run
from smi_texts import matrix

EIGHT = tuple(f"GPU{n}" for n in range(8))
FULL = {(a, b): "NV12" for a in EIGHT for b in EIGHT if a != b}


def found(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], *onto: str) -> Any:
    """The finding about the matrix; None where there is none."""
    (tmp_path / "t.txt").write_text(text, encoding="utf-8")
    assert run(capsys, "import", str(tmp_path / "t.txt"), *onto, "-o", str(tmp_path / "box.json")).code == 0
    document = json.loads(run(capsys, "health", "--format", "json", "--from", str(tmp_path / "box.json")).out)
    assert not [each for each in document["findings"] if each["fault"] == "check-failed"]
    return next((each for each in document["findings"] if each["id"] == "nvlink.matrix"), None)


@pytest.mark.parametrize(("changed", "status", "said"), [
    ({}, "pass", "every GPU"),
    ({pair: "SYS" for pair in FULL if "GPU6" in pair}, "fail", "no NVLink, 7 other GPUs have some"),
    ({("GPU2", "GPU3"): "NV10", ("GPU3", "GPU2"): "NV10"}, "warn", "fewer NVLinks than the 12 between most GPUs"),
    ({pair: "NV4" if {*pair} in ({"GPU0", "GPU1"}, {"GPU2", "GPU3"}) else "PHB" for pair in FULL}, "pass", "every"),
])  # fmt: skip
def test_a_matrix_alone(
    changed: dict[tuple[str, str], str], status: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = found(matrix(FULL | changed, EIGHT), tmp_path, capsys)
    assert finding["status"] == status
    assert said in finding["message"]
    assert finding["subject"]["name"] == ("GPU6" if status == "fail" else "host")


FOUR = [pair for pair in FULL if {*pair} <= {*EIGHT[:4]}]


@pytest.mark.parametrize(("labels", "status", "at"), [
    ({pair: "SYS" for pair in FULL if {*pair} & {*EIGHT[5:]}}, "fail", "GPU5"),
    ({pair: "SYS" for pair in FULL if {*pair} & {*EIGHT[4:]}}, "pass", "host"),  # as many with as without
    ({pair: "NV10" for pair in FULL if "GPU7" in pair}, "warn", "GPU7"),  # three quarters of the pairs have more
    ({pair: "NV10" for pair in FULL if "GPU7" in pair or {*pair} == {"GPU0", "GPU1"}}, "pass", "host"),
])  # fmt: skip
def test_most_gpus_are_alike(
    labels: dict[tuple[str, str], str], status: str, at: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    finding = found(matrix(FULL | labels, EIGHT), tmp_path, capsys)
    assert (finding["status"], finding["subject"]["name"]) == (status, at)


@pytest.mark.parametrize(("apart", "status"), [((), "pass"), (("GPU3",), "fail"), (("GPU2", "GPU3"), "pass")])
def test_three_gpus_are_enough(
    apart: tuple[str, ...], status: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    labels = {pair: "SYS" if {*pair} & {*apart} else FULL[pair] for pair in FOUR}
    assert found(matrix(labels, EIGHT[:4]), tmp_path, capsys)["status"] == status


def test_two_bridged_cards_beside_a_third_are_no_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    three = EIGHT[:3]
    labels = {(a, b): "NV4" if {a, b} == {"GPU0", "GPU1"} else "PHB" for a in three for b in three if a != b}
    assert found(matrix(labels, three), tmp_path, capsys)["status"] == "pass"


def test_a_matrix_is_held_against_the_box(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    onto = ("--onto", "dgx-station-v100")
    shown = run(capsys, "topo", "-m", "--from", "dgx-station-v100").out.partition("\n\n")[0] + "\n"
    own = found(shown, tmp_path, capsys, *onto)
    assert (own["status"], own["measured"]) == ("pass", 0)
    other = found(shown.replace("NV2", "NV1"), tmp_path, capsys, *onto)
    assert other["status"] == "warn"
    assert "NV1, not NV2" in other["message"]
