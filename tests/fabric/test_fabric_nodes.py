"""Nodes that iblinkinfo names by LID alone: of their own text, not of another subnet, and without a GUID."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fabrics import Fabric

from dgxcheck.cli import main
from dgxcheck.fabric.judge import judge
from dgxcheck.fabric.model import Fabric as Built
from dgxcheck.fabric.model import fabric_of
from dgxcheck.readers.fabric.any_fabric import read


def switches_only(fabric: Fabric, plane: str = "", managed: bool = True) -> str:
    """As ``iblinkinfo --switches-only`` prints them; every subnet manager counts LIDs from 1."""
    lids: dict[str, int] = {}
    blocks: dict[str, list[str]] = {}
    for end, far in fabric.up.items():
        for own, peer in ((end, far), (far, end)):
            if " " not in own[0] and own[0].startswith(plane):
                lid, other = (lids.setdefault(node, len(lids) + 1) if managed else 0 for node in (own[0], peer[0]))
                state = "Active" if managed else "Initialize"
                blocks.setdefault(own[0], []).append(
                    f"   {lid}    {own[1]}[  ] ==( 4X  25.78125 Gbps {state}/  LinkUp)==>"
                    f"  {other}  {peer[1]}[  ] \"{peer[0]}\" ( )"
                )
    return "\n".join("\n".join([f"Switch: {fabric.guids()[node]:#018x} {node}:", *rows])
                     for node, rows in blocks.items()) + "\n"  # fmt: skip


def test_two_planes_that_have_the_same_lids() -> None:
    fabric = Fabric("planes", 24)
    texts = [read(switches_only(fabric, plane)) for plane in ("a-", "b-")]
    assert {row.peer.lid for text in texts for row in text.rows if row.peer} == {*range(1, 68)}
    built = fabric_of(texts)
    assert (len(built.adapters), len(built.cables)) == (96, len(fabric.up))
    assert judge(built).findings == ()
    fabric.swap(("dgx003 mlx5_1", 1), ("dgx009 mlx5_1", 1))
    (finding,) = judge(fabric_of([read(switches_only(fabric, plane)) for plane in ("a-", "b-")])).findings
    assert finding.ends[:2] == ("dgx003 mlx5_1", "dgx009 mlx5_1")


def test_a_link_that_could_be_faster_where_no_other_is_of_its_kind() -> None:
    text = switches_only(Fabric("rails", 1))
    assert judge(fabric_of([read(text)])).findings == ()
    rows = text.replace("4X  25", "1X  25", 1).replace("( )", "( Could be 4X)", 1)
    (finding,) = judge(fabric_of([read(rows)])).findings
    assert finding.fault.word == "port-slow"
    assert finding.message.endswith(": 1x EDR, could be 4X")
    assert judge(fabric_of([read(text.replace("( )", "( Could be 50.0 Gbps)"))])).findings == ()


def test_lids_that_no_subnet_manager_gave() -> None:
    fabric = Fabric("rails", 16)
    built = fabric_of([read(switches_only(fabric, managed=False))])
    assert (len(built.adapters), len(built.cables)) == (128, len(fabric.up))
    (finding,) = judge(built).findings
    assert finding.fault.word == "no-subnet-manager"
    assert {adapter.description for adapter in built.adapters.values()} == {
        f"dgx{host:03} mlx5_{rail}" for host in range(16) for rail in range(8)
    }


def cables(fabric: Built) -> set[frozenset[str]]:
    return {frozenset({fabric.shown(cable.end), fabric.shown(cable.peer)}) for cable in fabric.cables}


def test_a_guid_of_another_text_names_the_node() -> None:
    fabric = Fabric("fat", 8)
    text = switches_only(fabric)
    lids = {row.peer.description: row.peer.lid for row in read(text).rows if row.peer}
    whole = "\n".join(
        f"CA {lids[end[0]]:5}  1 {fabric.guids()[end[0]]:#018x} 4x EDR - SW {lids.get(far[0], 1):5} {far[1]:2}"
        f" {fabric.guids()[far[0]]:#018x} ( '{end[0]}' - '{far[0]}' )"
        for end, far in fabric.up.items() if " " in end[0]
    )  # fmt: skip
    both, alone = fabric_of([read(text), read(whole)]), fabric_of([read(text)])
    assert cables(both) == cables(alone)
    assert {f"{guid:016x}" for guid in fabric.guids().values()} == {*both.switches, *both.adapters}


def test_what_stands_for_a_guid_is_not_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Nor judged: two of LID 7 are no GUID at two places, and counters of this LID are of neither."""
    fabric = Fabric("planes", 24)
    fabric.swap(("dgx003 mlx5_1", 1), ("dgx009 mlx5_1", 1))
    for plane in ("a-", "b-"):
        text = switches_only(fabric, plane).replace('"dgx005 mlx5_0"', '"MT4129 ConnectX7"')
        (tmp_path / plane).write_text(text.replace('"dgx005 mlx5_2"', '"MT4129 ConnectX7"'))
    (tmp_path / "counters").write_text("# Port counters: Lid 7 port 1\nSymbolErrorCounter:..............900000\n")
    files = [str(path) for path in sorted(tmp_path.iterdir())]
    assert main(["fabric", *files]) == 1
    assert "lid:" not in capsys.readouterr().out
    assert main(["fabric", "--format", "json", *files]) == 1
    document = json.loads(capsys.readouterr().out)
    (finding,) = document["findings"]
    assert [move["plug"]["guid"] for move in finding["moves"]] == ["", ""]
    assert {len(leaf["guid"]) for leaf in document["leaves"]} == {16}
