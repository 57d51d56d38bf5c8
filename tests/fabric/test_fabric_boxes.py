"""The adapters of a fabric in their machines: slot and GPUs, wrong names and wrong slots, rails for NCCL."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fabrics import Fabric, Kind

from dgxcheck.assessment.machine import LAUNCH, examine
from dgxcheck.cli import main
from dgxcheck.fabric.boxes import Boxes, joined, seats
from dgxcheck.fabric.judge import Judged, judge
from dgxcheck.fabric.model import fabric_of
from dgxcheck.facts.record import replace
from dgxcheck.readers.fabric.any_fabric import read

BOX = {seat.name: seat for seat in seats(examine("dgx-1-v100", LAUNCH))}


def swapped() -> tuple[Fabric, Judged]:
    fabric = Fabric("fat", 20)
    fabric.swap(("dgx005 mlx5_1", 1), ("dgx005 mlx5_2", 1))
    return fabric, judge(fabric_of([read(fabric.discovered())]))


def test_one_machine_stands_for_those_like_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ib.txt").write_text(swapped()[0].discovered())
    assert main(["fabric", "--boxes", "dgx-1-v100", str(tmp_path / "ib.txt")]) == 1
    out = capsys.readouterr().out
    assert "    dgx005 mlx5_1: 0000:0c:00.0, next to GPU2 and GPU3\n" in out
    assert "    dgx005 mlx5_2: 0000:84:00.0, next to GPU4 and GPU5\n" in out


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (BOX["mlx5_1"], ()),
        (BOX["mlx5_2"], ("this machine calls the adapter mlx5_2, so its node description is out of date",)),
        (replace(BOX["mlx5_1"], bdf="0000:99:00.0"), ("in other machines mlx5_1 is 0000:0c:00.0, so the card may be",)),
    ],
)
def test_a_name_or_a_card_may_be_wrong_instead_of_the_cable(own: object, said: tuple[str, ...]) -> None:
    fabric, found = swapped()
    guid = f"{fabric.guids()['dgx005 mlx5_1']:016x}"
    assert isinstance(own, type(BOX["mlx5_1"]))
    boxes = Boxes(by_guid={guid: replace(own, guid=guid)}, by_name={name: replace(seat, guid="")
                                                                     for name, seat in BOX.items()})  # fmt: skip
    (finding,) = joined(found, boxes).findings
    told = [seat for seat in finding.seats if "dgx005 mlx5_1: " in seat]
    assert told[0] == f"dgx005 mlx5_1: {own.shown}"
    assert len(told) == 1 + len(said)
    assert all(any(words in seat for seat in told) for words in said)


@pytest.mark.parametrize(
    ("kind", "box", "ways"),
    [
        ("fat", "dgx-1-v100", [("", "")] * 4),
        ("planes", "dgx-1-v100", [("", "0"), ("", "0"), ("", "1"), ("", "1")]),
        ("rails", "dgx-h100", [(str(rail), "") for rail in range(8)]),
    ],
)
def test_rails_and_planes_for_nccl(
    kind: Kind, box: str, ways: list[tuple[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ib.txt").write_text(Fabric(kind, 20).discovered())
    assert main(["fabric", "--boxes", box, "--format", "nccl-xml", str(tmp_path / "ib.txt")]) == 0
    xml = capsys.readouterr().out
    nets = {match[1]: match[0] for match in re.finditer(r'<net name="(\w+)".*?/>', xml)}
    for name, (rail, plane) in zip((f"mlx5_{number}" for number in range(8)), ways, strict=False):
        assert re.findall(r'(?:rail|plane)="\d+"', nets[name]) == [
            f'{key}="{value}"' for key, value in (("rail", rail), ("plane", plane)) if value
        ]
    assert main(["fabric", "--format", "nccl-xml", str(tmp_path / "ib.txt")]) == 3
