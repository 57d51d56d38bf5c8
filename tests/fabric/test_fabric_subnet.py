"""Links that no subnet manager configured, by LIDs and by the states of ports."""

from __future__ import annotations

import re

import pytest
from fabrics import Fabric
from wording_rules import broken_rules

from dgxcheck.fabric.judge import judge
from dgxcheck.fabric.model import fabric_of
from dgxcheck.facts.record import replace
from dgxcheck.readers.fabric.any_fabric import read
from dgxcheck.readers.fabric.plan import planned

NET_DUMP = """\
"leaf1", Mellanox, 0xfc6a1c0300aa0001, LID 5
1 : 1 : {} : LINK UP : 5 : 4x : 100 : NO-FEC : NO-RTR : 0xa088c20300000011 : 1 : 0 : "dgx001 mlx5_0"
2 : 2 : ACT : LINK UP : 5 : 4x : 100 : NO-FEC : NO-RTR : 0xa088c20300000012 : 1 : 0 : "dgx002 mlx5_0"
3 : 3 : DOWN : POLLING : : : : : : : : : ""
"""


def test_a_subnet_without_a_subnet_manager_is_one_finding() -> None:
    """By LIDs alone; a second output in which they have been given is the later one."""
    fabric = Fabric("planes", 24)
    text = re.sub(r"^.*'b-.*\n", lambda match: match[0].replace("    7 ", "    0 "), fabric.discovered(), flags=re.M)
    (finding,) = judge(fabric_of([read(text)])).findings
    assert (finding.fault.word, finding.status) == ("no-subnet-manager", "fail")
    assert finding.message == (
        "b-leaf000, b-leaf001, b-leaf002, b-spine00 and 15 more: no LID at all 96 links: no subnet manager configured"
        " them"
    )
    assert finding.action.startswith("run sminfo on a node of this subnet")
    assert broken_rules(finding.message) == []
    assert judge(fabric_of([read(text), read(fabric.discovered())])).findings == ()


def test_several_subnets_without_a_subnet_manager_are_one_finding() -> None:
    text = re.sub(r"(?<=CA|SW)     7 ", "     0 ", Fabric("planes", 24).discovered())
    (finding,) = judge(fabric_of([read(text)])).findings
    assert finding.message.endswith(" no LID at all 192 links: no subnet manager configured them")
    assert finding.action.startswith("run sminfo on a node of each of these subnets;")


LOOPED = """\
Switch 4 "S-0000000000000001" # "main" enhanced port 0 lid 1 lmc 0
[1]	"H-0000000000000011"[1](11) # "dgx001 mlx5_0" lid 3 4xEDR
[2]	"H-0000000000000012"[1](12) # "dgx002 mlx5_0" lid 4 4xEDR
[3]	"H-0000000000000013"[1](13) # "dgx003 mlx5_0" lid 5 4xEDR
[4]	"S-0000000000000002"[3] # "leaf" lid 0 4xEDR

Switch 4 "S-0000000000000002" # "leaf" enhanced port 0 lid 0 lmc 0
[1]	"S-0000000000000002"[2] # "leaf" lid 0 4xEDR
[2]	"S-0000000000000002"[1] # "leaf" lid 0 4xEDR
[3]	"S-0000000000000001"[4] # "main" lid 1 4xEDR
"""


def test_a_cable_that_joins_two_ports_of_a_switch_counts_once() -> None:
    (finding,) = judge(fabric_of([read(LOOPED)])).findings
    assert finding.message == "leaf: no LID at 2 links: no subnet manager configured them"


def test_a_system_whose_ports_are_not_active_is_one_finding() -> None:
    text = re.sub(r"CA     7(?=.*'dgx003 )", "CA     0", Fabric("rails", 16).discovered())
    (finding,) = judge(fabric_of([read(text)])).findings
    assert finding.message == "dgx003: no LID at 8 links: no subnet manager configured them"


@pytest.mark.parametrize(("adapters", "ends"), [("0123", ("dgx003",)), ("1", ("dgx003 mlx5_1",))])
def test_a_system_is_one_finding_though_each_rail_is_a_subnet(adapters: str, ends: tuple[str, ...]) -> None:
    rows = Fabric("rails", 16).discovered().splitlines()
    text = "\n".join(row for row in rows if re.search(r"mlx5_[0-3]'", row) and "spine" not in row)
    text = re.sub(rf"CA     7(?=.*'dgx003 mlx5_[{adapters}]')", "CA     0", text)
    (finding,) = judge(fabric_of([read(text)])).findings
    assert finding.ends[: len(ends)] == ends


@pytest.mark.parametrize(("row", "action"), [
    ("3 : 3 : DOWN : POLLING", "look at the cable from dgx003 mlx5_0 to leaf1 port 3: reseat"),
    ("3 : 3 : DOWN : DISABLED", "look up who disabled leaf1 port 3 and why"),
    ("       5    3[  ] ==(                Down/Disabled)==>             [  ] \"\" ( )", "look up who disabled leaf1"),
])  # fmt: skip
def test_a_port_that_was_disabled_is_no_bad_cable(row: str, action: str) -> None:
    """``ibportstate LID PORT disable``: of ibdiagnet and of iblinkinfo."""
    plan = planned("".join(f"dgx00{number},mlx5_0,leaf1,{number}\n" for number in (1, 2, 3, 4)), "plan")
    more = '4 : 4 : ACT : LINK UP : 5 : 4x : 100 : NO-FEC : NO-RTR : 0xa088c20300000013 : 2 : 0 : "dgx003 mlx5_1"\n'
    text = NET_DUMP.format("ACT").replace("3 : 3 : DOWN : POLLING", row if ":" in row else "") + more
    text += "" if ":" in row else f"Switch: 0xfc6a1c0300aa0001 leaf1:\n{row}\n"
    (finding,) = (each for each in judge(fabric_of([read(text)]), plan).findings if "dgx003 mlx5_0" in each.ends)
    assert finding.action.startswith(action)


def test_an_adapter_whose_port_was_disabled() -> None:
    fabric = Fabric("rails", 16)
    head = f"CA: dgx003 mlx5_0:\n{fabric.guids()['dgx003 mlx5_0']:#018x}"
    rows = read(f'{head} 7 1[  ] ==(                Down/Disabled)==>             [  ] "" ( )\n')
    del fabric.up["dgx003 mlx5_0", 1]
    findings = judge(fabric_of([read(fabric.discovered()), rows])).findings
    assert [each.action.split(" and why")[0] for each in findings] == ["look up who disabled dgx003 mlx5_0"]


def test_lines_may_be_numbered() -> None:
    """As ``grep -n`` prints them."""
    text = (
        "Switch: 0x0002c902004885a0 leaf1:\n"
        '          12    1[  ] ==( 4X  25.78125 Gbps Active/  LinkUp)==>       3    1[  ] "gpu01 mlx5_0" ( )\n'
    )
    numbered = "".join(f"{number}:{line}\n" for number, line in enumerate(text.splitlines(), 7))
    assert read(numbered).rows == read(text).rows != ()


def test_an_uplink_whose_port_was_disabled() -> None:
    """Of two that are lacking the other one is a cable still; one that another text has up is enabled again."""
    fabric = Fabric("fat", 40)
    for number in range(10):
        fabric.up[f"leaf{number:03}", 40] = "spine03", 20 + number
    del fabric.up["leaf003", 20]
    head = f"Switch: {fabric.guids()['leaf003']:#018x} leaf003:\n"
    rows = read(f'{head}       7   20[  ] ==(                Down/Disabled)==>             [  ] "" ( )\n')
    (finding,) = judge(fabric_of([read(fabric.discovered()), rows])).findings
    assert finding.message == "leaf003 has 1 link to spine03, 2 at most other switches; a port is disabled"
    assert finding.action.startswith("look up who disabled leaf003 port 20 and why")
    assert finding.action.endswith("enable)")
    del fabric.up["leaf003", 40]
    later = replace(rows, rows=(replace(rows.rows[0], state="ACTIVE", disabled=False),))
    for texts, action in (
        ([rows], "enable); then look at the cable from leaf003 port 40 to spine03"),
        ([rows, later], "look at each cable from"),
    ):
        (finding,) = judge(fabric_of([read(fabric.discovered()), *texts])).findings
        assert action in finding.action


def test_ports_that_are_not_active() -> None:
    fabric = Fabric("fat", 8)
    lines = fabric.discovered().splitlines()
    lines = [line.replace("CA     7", "CA     0") if "dgx003 mlx5_1" in line else line for line in lines]
    (finding,) = judge(fabric_of([read("\n".join(lines))])).findings
    assert finding.ends == ("dgx003 mlx5_1", "leaf000 port 14")
    assert finding.message == "dgx003 mlx5_1 - leaf000 port 14: port has no LID: no subnet manager configured it"
    lines = [line.replace("CA     7", "CA     0") if "leaf000'" in line else line for line in lines]
    (finding,) = judge(fabric_of([read("\n".join(lines))])).findings
    assert finding.message == "leaf000: no LID at 16 links: no subnet manager configured them"
    text = NET_DUMP.format("INI")
    (finding,) = judge(fabric_of([read(text)])).findings
    assert finding.message == (
        "leaf1 port 1 - dgx001 mlx5_0: port is INIT (link up): no subnet manager configured it"
    )
    assert judge(fabric_of([read(NET_DUMP.format("ACT"))])).findings == ()
