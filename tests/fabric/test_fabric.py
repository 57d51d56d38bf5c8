"""What is wrong with the cabling of a fabric is found, named with both ends, and what else is right stays unsaid."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from fabrics import FAULTS, KINDS, Fabric, Kind, Planted, judged
from sample import swept
from wording_rules import broken_rules

from dgxcheck.cli import main
from dgxcheck.fabric.finding import FabricFinding
from dgxcheck.fabric.judge import judge
from dgxcheck.fabric.model import ANY, fabric_of
from dgxcheck.fabric.reading import outputs
from dgxcheck.output.fabric.text import schemes
from dgxcheck.readers.fabric.any_fabric import read
from dgxcheck.readers.fabric.plan import PlannedCable, PlannedEnd, planned


def named(findings: Sequence[FabricFinding], planted: Planted) -> bool:
    word, ends = planted
    return any(finding.fault.word == word and ends <= {*finding.ends} for finding in findings)


SMALL = (("fat", 40, 1), ("rails", 20, 1), ("planes", 24, 1))


@pytest.mark.in_ci
@pytest.mark.parametrize(
    ("kind", "systems", "places"),
    swept([*SMALL, *((kind, 124, 10) for kind in KINDS)], SMALL),
)
def test_every_fault_is_named_wherever_it_is(kind: Kind, systems: int, places: int) -> None:
    """Each alone, without a plan and with one; and nothing else."""
    sound = Fabric(kind, systems)
    plan = planned(sound.plan(), "plan")
    assert judged(sound).findings == judged(sound, plan).findings == ()
    wrong: list[object] = []
    for fault in FAULTS:
        for number in range(places):
            fabric = Fabric(kind, systems)
            planted = fault(fabric, random.Random(number))
            built = fabric_of([read(fabric.discovered())])
            for cables in (None, plan):
                findings = judge(built, cables).findings
                if len(findings) != 1 or not named(findings, planted):
                    wrong.append((fault.__name__, number, cables is not None, planted, findings))
                wrong += [broken for finding in findings for broken in broken_rules(finding.message)]
    assert wrong == []


@pytest.mark.in_ci
@pytest.mark.parametrize("kind", swept(KINDS, ("fat",)))
def test_ten_at_once_are_named(kind: Kind) -> None:
    """Two pairs of uplinks may be exchanged either way."""
    plan = planned(Fabric(kind, 124).plan(), "plan")
    for fault in FAULTS:
        fabric = Fabric(kind, 124)
        chance = random.Random(5)
        planted = [fault(fabric, chance) for _ in range(10)]
        for cables in (None, plan):
            findings = judged(fabric, cables).findings
            assert sum(named(findings, each) for each in planted) >= 9, fault
            assert len(findings) == 10, fault


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", [fault for fault in FAULTS if "missing" not in fault.__name__])
def test_the_moves_put_all_right(kind: Kind, fault: Callable[[Fabric, random.Random], Planted]) -> None:
    fabric = Fabric(kind, 40)
    fault(fabric, random.Random(3))
    found = judged(fabric)
    guids = {f"{guid:016x}": node for node, guid in fabric.guids().items()}
    ends = {(guids[guid], port): (guid, port) for port in range(64) for guid in guids}
    back = {port: end for end, port in ends.items()}
    targets = {move.of: move.target for finding in found.findings for move in finding.moves}
    for of, target in targets.items():
        if target[1] != ANY:
            fabric.up[back[of]] = back[target]
    if targets:
        assert fabric.up == fabric.planned


@pytest.mark.parametrize(
    ("kind", "leaf", "planned_for", "found"),
    [
        ("fat", "leaf004", True, "leaf004 is not in the fabric, nor are dgx[016-019] behind it; 32 cables planned"),
        ("rails", "leaf001r0", True, "leaf001r0 is not in the fabric; 32 cables planned"),
        ("planes", "a-leaf002", False, "mlx5_0/mlx5_1 of dgx016, dgx017, dgx018, dgx019 and 4 more are not in the"
         " fabric, as they are of 32 other systems"),
    ],
)  # fmt: skip
def test_a_leaf_that_is_off_is_one_finding(kind: Kind, leaf: str, planned_for: bool, found: str) -> None:
    """Systems that only it leads to are not looked for one by one."""
    fabric = Fabric(kind, 40)
    plan = planned(fabric.plan(), "plan") if planned_for else None
    for end in [end for end, far in fabric.up.items() if leaf in (end[0], far[0])]:
        del fabric.up[end]
    assert [finding.message for finding in judged(fabric, plan).findings] == [found]


def test_a_system_that_is_off_beside_a_leaf_that_is_off_stays_a_finding() -> None:
    fabric = Fabric("planes", 40)
    plan = planned(fabric.plan(), "plan")
    for end in [end for end, far in fabric.up.items() if "a-leaf002" in (end[0], far[0]) or end[0][:6] == "dgx017"]:
        del fabric.up[end]
    assert [finding.ends for finding in judged(fabric, plan).findings] == [("a-leaf002",), ("dgx017",)]


def test_two_swaps_are_told_as_they_are_done() -> None:
    fabric = Fabric("fat", 124)
    fabric.swap(("dgx005 mlx5_1", 1), ("dgx005 mlx5_2", 1))
    fabric.swap(("dgx009 mlx5_0", 1), ("dgx040 mlx5_3", 1))
    said = [(finding.message, finding.action) for finding in judged(fabric).findings]
    assert said == [
        ("dgx005 mlx5_1 and mlx5_2 have each other's cable: leaf001 ports 7 and 6; on one switch this costs no"
         " bandwidth",
         "exchange the two plugs at leaf001 ports 7 and 6"),
        ("dgx009 mlx5_0 and dgx040 mlx5_3 have each other's cable: leaf010 port 4 and leaf002 port 5",
         "exchange the two plugs at leaf010 port 4 and leaf002 port 5"),
    ]  # fmt: skip


@pytest.mark.parametrize(("new", "with_plan", "message", "action"), [
    # mlx5_2 is gone, and the driver counts those behind it from there
    ({f"dgx005 mlx5_{rail}": f"dgx005 mlx5_{rail - (rail > 2)}" if rail != 2 else "" for rail in range(8)}, False,
     "dgx005: 5 of 7 cables in the places of its other cables, and dgx005 mlx5_7 has no link",
     "look whether dgx005 numbers its adapters otherwise than other systems"),
    ({"dgx005 mlx5_6": "", "dgx005 mlx5_7": "dgx005 mlx5_6"}, True,
     "dgx005: 1 of 7 cables in the places of its other cables, and dgx005 mlx5_7 has no link",
     "look whether dgx005 numbers its"),
    ({f"dgx{a:03} mlx5_{rail}": f"dgx{11 - a:03} mlx5_{rail}" for a in (5, 6) for rail in range(8)}, True,
     "dgx005 and dgx006: 16 of 16 cables in each other's places", "look whether dgx005 and dgx006 have each"),
    ({f"leaf000r{a}": f"leaf000r{3 - a}" for a in (1, 2)}, True,
     "leaf000r1 and leaf000r2: 64 of 64 cables in each other's places", "look whether leaf000r1 and leaf000r2"),
    ({f"dgx{a:03} mlx5_{rail}": f"dgx005 mlx5_{rail}" * (a > 5) for a in (5, 20) for rail in range(8)}, True,
     "dgx005: 8 of 8 cables on leaf001r[0-7], not on leaf000r[0-7]", "look whether dgx005 is where it should"),
])  # fmt: skip
def test_a_name_is_likelier_wrong_than_most_plugs(
    new: dict[str, str], with_plan: bool, message: str, action: str
) -> None:
    """Nodes that have another name, or none as they are off; no plug is moved."""
    fabric = Fabric("rails", 32)
    plan = planned(fabric.plan(), "plan") if with_plan else None
    fabric.planned |= {(new.get(node, node), port): far for (node, port), far in fabric.up.items()}
    fabric.up = {(new.get(node, node), port): (new.get(far, far), number)
                 for (node, port), (far, number) in fabric.up.items() if new.get(node, node)}  # fmt: skip
    (finding,) = [each for each in judged(fabric, plan).findings if "dgx020" not in each.ends]
    assert (finding.message, finding.action[: len(action)], finding.moves) == (message, action, ())


def test_an_adapter_on_the_switch_of_another_rail() -> None:
    fabric = Fabric("rails", 48)
    fabric.up["dgx020 mlx5_2", 1] = "leaf001r3", 40
    (finding,) = judged(fabric).findings
    assert finding.message == (
        "dgx020 mlx5_2 is on leaf001r3 port 40, the switch of mlx5_3 (16 systems): traffic to other mlx5_2 crosses a"
        " spine; it belongs to leaf001r2 port 5"
    )
    assert finding.action == "move its plug from leaf001r3 port 40 to leaf001r2 port 5"


def test_a_cable_between_two_systems_is_at_no_switch() -> None:
    fabric = Fabric("rails", 20)
    plan = planned(fabric.plan(), "plan")
    fabric.up["dgx003 mlx5_1", 1] = "dgx007 mlx5_2", 1
    del fabric.up["dgx007 mlx5_2", 1]
    assert [finding.message for finding in judged(fabric, plan).findings] == [
        "dgx003 mlx5_1 is on dgx007 mlx5_2; it belongs to leaf000r1 port 4",
        "dgx007 mlx5_2 is on dgx003 mlx5_1; it belongs to leaf000r2 port 8",
    ]


@pytest.mark.parametrize(("there", "said"), [
    ("", ["dgx003 mlx5_9 is not in the fabric; it belongs to dgx007 mlx5_9",
          "dgx007 mlx5_9 is not in the fabric; it belongs to dgx003 mlx5_9"]),
    ("dgx003 mlx5_9",
     ["dgx007 mlx5_9 is not in the fabric; it belongs to dgx003 mlx5_9, where leaf000r1 port 40 is"]),
])  # fmt: skip
def test_a_cable_that_is_planned_between_two_systems(there: str, said: list[str]) -> None:
    fabric = Fabric("rails", 20)
    plan = [*planned(fabric.plan(), "plan"),
            PlannedCable(PlannedEnd("dgx003", "mlx5_9", 0), PlannedEnd("dgx007", "mlx5_9", 0))]  # fmt: skip
    if there:
        fabric.planned[there, 1] = fabric.up[there, 1] = "leaf000r1", 40
    assert [finding.message for finding in judged(fabric, plan).findings] == said


@pytest.mark.parametrize(("systems", "to", "said"), [
    (2, (2, 1), ["dgx000 and dgx001: 16 of 16 cables in each other's places"]),
    (3, (40, 50, 3), [f"dgx{host:03}: 8 of 8 cables at other ports of leaf000r[0-7]" for host in (0, 1)]),
])  # fmt: skip
def test_most_cables_at_other_ports_are_still_judged_by_the_plan(
    systems: int, to: tuple[int, ...], said: list[str]
) -> None:
    fabric = Fabric("rails", systems)
    plan = planned(fabric.plan(), "plan")
    fabric.up |= {(f"dgx{host:03} mlx5_{rail}", 1): (f"leaf000r{rail}", port)
                  for host, port in enumerate(to) for rail in range(8)}  # fmt: skip
    assert sorted(finding.message for finding in judged(fabric, plan).findings) == said


def test_an_adapter_at_a_free_port_of_its_own_leaf_is_where_a_technician_put_it() -> None:
    fabric = Fabric("fat", 40)
    fabric.up["dgx005 mlx5_1", 1] = "leaf001", 40
    assert judged(fabric).findings == ()
    (finding,) = judged(fabric, planned(fabric.plan(), "plan")).findings
    assert finding.fault.word == "cable-misplaced"


def test_adapters_that_are_called_otherwise_or_by_no_name_are_not_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a public fabric of 119 systems 17 call mlx5_0 what the others call HCA-1, and 69 adapters name their model in
    place of their host."""
    text = Fabric("rails", 64).discovered()
    for host in range(16):
        text = re.sub(rf"dgx{host:03} mlx5_(\d)", rf"dgx{host:03} HCA-\1", text)
    for host in range(20, 26):
        text = text.replace(f"dgx{host:03} mlx5_5", "MT4129 ConnectX7   Mellanox Technologies")
    (tmp_path / "ib.txt").write_text(text)
    assert main(["fabric", str(tmp_path / "ib.txt")]) == 0
    assert "\n6 adapters without a host's name, not judged: MT4129 ConnectX7" in capsys.readouterr().out
    fabric = Fabric("rails", 64)
    del fabric.up["dgx040 mlx5_2", 1]
    text = fabric.discovered().replace("dgx041 mlx5_3", "MT4129 ConnectX7   Mellanox Technologies")
    (finding,) = judge(fabric_of([read(text)])).findings
    assert finding.ends == ("dgx040 mlx5_2", "leaf002r2 port 9")
    assert judge(fabric_of([read(text)]), planned(fabric.plan(), "plan")).findings == (finding,)


def test_a_system_with_its_domain_is_compared_with_those_without() -> None:
    fabric = Fabric("rails", 20)
    del fabric.up["dgx007 mlx5_3", 1]
    (alone,) = judged(fabric).findings
    fabric.up = {(end.replace("dgx007 ", "dgx007.example.com "), port): far for (end, port), far in fabric.up.items()}
    fabric.planned |= fabric.up
    (found,) = judged(fabric).findings
    assert found.message == alone.message.replace("dgx007", "dgx007.example.com")


def test_a_system_that_counts_its_adapters_from_elsewhere_lacks_none() -> None:
    """Of 719 systems with HCA-1 and HCA-2 in a public fabric six have HCA-3 and HCA-4 in their places."""
    text = Fabric("rails", 64).discovered()
    text = re.sub(r"dgx009 mlx5_([01])", lambda match: f"dgx009 mlx5_{int(match[1]) + 8}", text)
    assert judge(fabric_of([read(text)])).findings == ()


def test_a_row_of_systems_that_is_cabled_otherwise_is_no_swap() -> None:
    """Of 264 systems with four rails in a public fabric six share two leaves, two adapters of each on one."""
    fabric = Fabric("rails", 64)
    for host in range(6):
        for rail in range(8):
            fabric.up[f"dgx{host:03} mlx5_{rail}", 1] = f"leaf000r{rail // 2}", 40 + 2 * host + (rail + 1) % 2
    for host in range(6, 16):
        for rail in range(8):
            del fabric.up[f"dgx{host:03} mlx5_{rail}", 1]
    assert [each.message for each in judged(fabric).findings if each.fault.word == "cable-swapped"] == []


def test_cabling_without_a_rule_is_not_judged() -> None:
    fabric = Fabric("fat", 60)
    chance = random.Random(1)
    ends = fabric.of_adapters()
    places = [fabric.up[end] for end in ends]
    chance.shuffle(places)
    fabric.up.update(zip(ends, places, strict=True))
    assert judged(fabric).findings == ()


def test_of_two_adapters_one_is_moved() -> None:
    """Each of the two would do; both would be one move too many."""
    fabric = Fabric("fat", 0)
    for number in range(24):
        for name, leaf in enumerate("ab"):
            fabric.up[f"dgx{number:03} mlx5_{name}", 1] = f"leaf{leaf}{number // 8}", number % 8 + 1
    fabric.planned = dict(fabric.up)
    assert judged(fabric).findings == ()
    fabric.swap(("dgx003 mlx5_0", 1), ("dgx013 mlx5_0", 1))
    (finding,) = judged(fabric).findings
    assert finding.action == "exchange the two plugs at leafa1 port 6 and leafa0 port 4"
    fabric.up = dict(fabric.planned)
    fabric.up["dgx003 mlx5_1", 1] = "leafa1", 15
    (finding,) = judged(fabric).findings
    assert finding.action == "move its plug from leafa1 port 15 to leafb0 port 4"


def test_a_guid_at_two_places() -> None:
    fabric = Fabric("fat", 40)
    guids = fabric.guids()
    one, other = (f"{guids[name]:#018x}" for name in ("dgx003 mlx5_1", "dgx030 mlx5_2"))
    text = fabric.discovered().replace(other, one).replace("dgx030 mlx5_2", "dgx003 mlx5_1")
    for plan in (None, planned(fabric.plan(), "plan")):
        (double,) = judge(fabric_of([read(text)]), plan).findings
        assert double.fault.word == "guid-duplicate"
        assert {*double.ends} >= {"leaf000 port 14", "leaf007 port 11"}


def test_counters_are_told_with_their_cable() -> None:
    fabric = Fabric("fat", 40)
    guids = fabric.guids()
    errors = (
        'Errors for 0x1 "leaf003"\n'
        f"   GUID {guids['leaf003']:#x} port ALL: [SymbolErrorCounter == 990] [PortXmitWait == 7]\n"
        f"   GUID {guids['leaf003']:#x} port 20: [SymbolErrorCounter == 990] [PortXmitWait == 7]\n"
        f"   GUID {guids['spine03']:#x} port 4: [LinkDownedCounter == 12]\n"
        f"   GUID {guids['leaf004']:#x} port 20: [PortXmitDiscards == 5000] [SymbolErrorCounter == 10]\n"
    )
    (finding,) = judged(fabric, more=errors).findings
    assert finding.ends == ("leaf003 port 20", "spine03 port 4")
    assert "symbol_error 990; at the other end link_downed 12 since" in finding.message
    for usual, most, ends in ((14, 90, [("leaf001 port 15", "dgx007 mlx5_2")]), (60, 70, [()]),
                              (40, 60, [("leaf001 port 15", "dgx007 mlx5_2")])):  # fmt: skip
        reboots = "".join(
            f"   GUID {guids[far]:#x} port {port}: [LinkDownedCounter == {count}]\n"
            for (node, _), (far, port) in fabric.up.items() if " " in node
            for count in (most if node == "dgx007 mlx5_2" else usual,)
        )  # fmt: skip
        found = judged(fabric, more=f'Errors for 0x1 "leaf"\n{reboots}').findings
        assert [finding.ends for finding in found] == ends


def test_errors_of_most_links_of_a_switch_are_one_finding() -> None:
    fabric = Fabric("rails", 16)
    guids = fabric.guids()
    rows = [f"   GUID {guids['leaf000r3']:#x} port {port}: [SymbolErrorCounter == 900]\n" for port in range(1, 20)]
    (finding,) = judged(fabric, more="".join(rows)).findings
    assert finding.message == "leaf000r3: errors at 19 of 32 links since the counters were cleared"
    assert len(judged(fabric, more="".join(rows[:9])).findings) == 9


@pytest.mark.parametrize(("last", "whole"), [(0, True), (1, True), (6, False), (30, False)])
def test_an_output_that_was_cut_is_told(last: int, whole: bool, tmp_path: Path) -> None:
    text = Fabric("fat", 8).discovered()
    (tmp_path / "ib.txt").write_text(text[: len(text) - last])
    assert (outputs([str(tmp_path / "ib.txt")]).unread == ()) == whole


def test_an_output_that_ends_with_a_whole_row_is_cut_all_the_same(tmp_path: Path) -> None:
    """What is at the far end of a link has rows of its own, where others of its kind have."""
    lines = sorted(Fabric("fat", 8).discovered().splitlines(keepends=True), key=lambda line: line.split()[3])
    for some, unread in ((lines, 0), (lines[:-9], 1), ([line for line in lines if line.startswith("SW")], 0)):
        (tmp_path / "ib.txt").write_text("".join(some))
        assert len(outputs([str(tmp_path / "ib.txt")]).unread) == unread


def test_a_fabric_in_which_nobody_has_a_name_is_not_judged() -> None:
    text = re.sub(r"dgx\d{3} mlx5_\d", "MT4129 ConnectX7   Mellanox Technologies", Fabric("rails", 16).discovered())
    found = judge(fabric_of([read(text)]))
    assert (found.findings, found.verdict) == ((), "unknown")


def test_two_machines_of_one_name_are_a_finding_and_no_note() -> None:
    fabric = Fabric("rails", 32)
    text = fabric.discovered().replace("dgx020 mlx", "dgx021 mlx")
    found = judge(fabric_of([read(text)]))
    (finding,) = found.findings
    assert (found.verdict, finding.fault.word, len(finding.ends)) == ("warn", "node-name", 16)
    assert finding.message.startswith("dgx021: 16 adapters have 8 node descriptions")
    assert not any("without a host's name" in line for line in schemes(found))


@pytest.mark.parametrize(("kind", "switch", "words"), [
    ("fat", "leaf004", "spine[00-15]: 7 links down each; port 5 has no link at any of them"),
    ("rails", "spine07", "15 uplinks each; port 24 has no link at any of them"),
    ("fat", "core3", "spine[00-15]: 7 uplinks each; port 43 has no link at any of them"),
    ("planes", "b-spine05", "b-leaf[000-003]: 15 uplinks each; port 22 has no link at any"),
    ("planes", "b-spine15", "b-leaf[000-003]: 15 uplinks each; 16 at a-leaf[000-003] with as many adapters"),
])  # fmt: skip
def test_what_all_lack_warns(kind: Kind, switch: str, words: str) -> None:
    """A switch that is off is in no output, nor are the systems that it alone leads to: no neighbour has what another
    lacks."""
    fabric = Fabric(kind, 32)
    if switch[:4] == "core":
        fabric.up |= {(f"spine{spine:02}", 40 + core): (f"core{core}", spine + 1)
                      for spine in range(16) for core in range(8)}  # fmt: skip
        fabric.planned = dict(fabric.up)
    fabric.up = {end: far for end, far in fabric.up.items() if switch not in (end[0], far[0])}
    (finding,) = judged(fabric).findings
    assert (finding.status, finding.fault.word) == ("warn", "uplinks-uneven")
    assert words in finding.message
    assert judge(fabric_of([read(fabric.discovered())]), cut=True).findings == ()
