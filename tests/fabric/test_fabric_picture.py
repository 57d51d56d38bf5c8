"""Pictures and pages of a fabric: readable at 500 systems, what is wrong marked and named, nothing loaded."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest
from fabrics import ADAPTERS, FAULTS, Fabric, Kind
from picture_rules import faults
from test_report_page import EVIL, parsed

from dgxcheck.cli import main
from dgxcheck.fabric.judge import Judged, judge
from dgxcheck.fabric.model import fabric_of
from dgxcheck.output.fabric.picture import drawn
from dgxcheck.readers.fabric.any_fabric import read


def faulty(kind: Kind, systems: int) -> tuple[Fabric, Judged]:
    fabric = Fabric(kind, systems)
    chance = random.Random(4)
    for fault in FAULTS:
        fault(fabric, chance)
    return fabric, judge(fabric_of([read(fabric.discovered())]))


@pytest.mark.parametrize("kind", [*ADAPTERS])
def test_nothing_overlaps_and_every_finding_is_marked(kind: Kind) -> None:
    _, found = faulty(kind, 64)
    picture = drawn(found)
    assert faults(picture) == []
    texts = [line.text for box in picture.boxes for line in box.lines]
    for number, _ in enumerate(found.findings, 1):
        assert any(text.startswith(f"{number}. ") for text in texts)
        assert any(box.tone and str(number) in box.lines[0].text for box in picture.boxes if box.kind == "switch")


def test_500_systems_stay_readable() -> None:
    _, found = faulty("fat", 500)
    picture = drawn(found)
    assert picture.width <= 1300
    assert picture.height < 1500
    assert {f"leaf{number:03}" for number in range(125)} <= {box.key for box in picture.boxes}
    assert {line.size for box in picture.boxes for line in box.lines} <= {10.5, 14.5}


def test_the_formats_are_what_they_say(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fabric, found = faulty("fat", 40)
    (tmp_path / "ib.txt").write_text(fabric.discovered().replace("leaf003", EVIL[:60].replace("'", "")))
    assert main(["fabric", "--format", "svg", str(tmp_path / "ib.txt")]) == 2
    ElementTree.fromstring(capsys.readouterr().out)
    assert main(["fabric", "--format", "html", str(tmp_path / "ib.txt")]) == 2
    tree = parsed(capsys.readouterr().out)
    names = {str(each.tag).rpartition("}")[2] for each in tree.iter()}
    assert not names & {"script", "link", "img", "iframe"}
    said = " ".join("".join(tree.itertext()).split())
    assert found.findings[0].message in said
    assert main(["fabric", "--format", "prometheus", str(tmp_path / "ib.txt")]) == 2
    assert 'dgxcheck_fabric_leaf_uplinks{switch="leaf007"} 16' in capsys.readouterr().out
