"""The adapters of a fabric in their machines: slot and GPUs, wrong names and wrong slots, rails for NCCL."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fabrics import Fabric, Kind, judged

from dgxcheck.assessment.machine import LAUNCH, examine
from dgxcheck.cli import main
from dgxcheck.fabric.boxes import Boxes, boxes_of, joined, seats
from dgxcheck.fabric.judge import Judged, judge
from dgxcheck.fabric.model import fabric_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import BadInput
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


@pytest.mark.parametrize(("kind", "others", "action"), [
    ("fat", ("dgx009 mlx5_0", "dgx040 mlx5_3"),
     "dgx005 mlx5_1 to leaf001 port 6, dgx040 mlx5_3 to leaf010 port 4, dgx009 mlx5_0 to leaf002 port 5"),
    ("rails", ("dgx020 mlx5_2", "dgx040 mlx5_3"),
     "dgx005 mlx5_1 to leaf000r1 port 6, dgx040 mlx5_3 to leaf002r3 port 9, dgx020 mlx5_2 to leaf001r2 port 5"),
])  # fmt: skip
def test_three_plugs_in_a_ring(kind: Kind, others: tuple[str, str], action: str) -> None:
    fabric = Fabric(kind, 48)
    a, b, c = ((name, 1) for name in ("dgx005 mlx5_1", *others))
    fabric.up[a], fabric.up[b], fabric.up[c] = fabric.up[b], fabric.up[c], fabric.up[a]
    (finding,) = judged(fabric).findings
    assert (finding.fault, finding.status) == (Fault.CABLE_SWAPPED, "warn")
    assert finding.message == f"dgx005 mlx5_1, {others[1]}, {others[0]} have each other's cables in a ring"
    assert finding.action == f"move the plugs of these cables: {action}"


def test_an_adapter_on_a_spine() -> None:
    fabric = Fabric("rails", 48)
    fabric.up["dgx005 mlx5_1", 1] = "spine03", 39
    (finding,) = judged(fabric).findings
    assert finding.message == "dgx005 mlx5_1 is on spine03 port 39, a spine; it belongs to leaf000r1 port 6"


def test_recordings_without_an_hca_are_refused() -> None:
    with pytest.raises(BadInput, match="no recording of --boxes has an HCA"):
        boxes_of(["geforce-x4"])
