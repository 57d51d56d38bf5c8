"""Outputs about a whole fabric: each tool's own form, as versions and machines spell it, and anything else."""

from __future__ import annotations

import contextlib
import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.fabric.judge import judge
from dgxcheck.fabric.model import Fabric, fabric_of
from dgxcheck.facts.missing import BadInput
from dgxcheck.readers.fabric.any_fabric import read
from dgxcheck.readers.fabric.plan import planned
from dgxcheck.readers.fabric.rows import speed_of_lane

NET_DUMP = """\
"MF0;pod1-leaf1:MQM9700/U1", Mellanox, 0xFC6A1C0300AA0001, LID 5
#       : IB#  : Sta : PhysSta : MTU : LWA : LSA : FEC mode         : Retran : Neighbor Guid      : N# : NLID : Neighbor Description
1/1/1   : 1    : ACT : LINK UP : 5   : 4x  : 100 : MLNX_RS_271_257  : NO-RTR : 0xa088c20300000011 : 1  : 21   : "dgx001 mlx5_0"
1/1/2   : 2    : DOWN: POLLING :     :     :     :                  :        :                    :    :      : ""
1/2/1   : 3    : ACT : LINK UP : 5   : 2x  : 100 : MLNX_RS_271_257  : NO-RTR : 0xa088c20300000012 : 1  : 22   : "dgx001 mlx5_1"
1/32/1  : 63   : ACT : LINK UP : 5   : 4x  : 100 : MLNX_RS_271_257  : NO-RTR : 0xfc6a1c0300aa0002 : 1/7/2  : 6 : "MF0;pod1-spine1:MQM9700/U1"
"MF0;pod1-spine1:MQM9700/U1", Mellanox, 0xfc6a1c0300aa0002, LID 6
1/7/2   : 14   : ACT : LINK UP : 5   : 4x  : 100 : MLNX_RS_271_257  : NO-RTR : 0xfc6a1c0300aa0001 : 1/32/1 : 5 : "MF0;pod1-leaf1:MQM9700/U1"
"""  # noqa: E501


def joined(text: str) -> dict[str, str]:
    """The ends of each cable, and its rate."""
    found = fabric_of([read(text)])
    return {f"{found.shown(cable.end)} - {found.shown(cable.peer)}": cable.rate for cable in found.cables}


DB_CSV = """\
# ibdiagnet version         : "IBDIAGNET 2.13.0"
START_NODES
NodeDesc,NumPorts,NodeType,SystemImageGUID,NodeGUID,PortGUID,LocalPortNum
"MF0;pod1-leaf1:MQM9700/U1",65,2,0xfc6a1c0300aa0001,0xfc6a1c0300aa0001,0xfc6a1c0300aa0001,0
"dgx001 mlx5_0",1,1,0xa088c20300000010,0xa088c20300000010,0xa088c20300000011,1
"dgx002 mlx5_0",1,1,0xa088c20300000020,0xa088c20300000020,0xa088c20300000021,1
END_NODES

START_PORTS
NodeGuid,PortGuid,PortNum,LID,LinkWidthActv,LinkWidthSup,LinkSpeedActv,PortPhyState,PortState,LinkSpeedSup
0xfc6a1c0300aa0001,0xfc6a1c0300aa0001,0,5,0,0,0,0,0,0
0xfc6a1c0300aa0001,0xfc6a1c0300aa0001,1,0,2,19,2048,5,4,3841
0xfc6a1c0300aa0001,0xfc6a1c0300aa0001,2,0,1,19,2048,5,4,3841
0xfc6a1c0300aa0001,0xfc6a1c0300aa0001,3,0,2,19,1,3,1,3841
0xa088c20300000010,0xa088c20300000011,1,21,2,19,2048,5,4,3841
0xa088c20300000020,0xa088c20300000021,1,22,1,19,2048,5,4,3841
END_PORTS

START_LINKS
NodeGuid1,PortNum1,NodeGuid2,PortNum2
0xa088c20300000010,1,0xfc6a1c0300aa0001,1
0xfc6a1c0300aa0001,2,0xa088c20300000020,1
END_LINKS

START_PM_INFO
NodeGUID,PortGUID,PortNumber,LinkDownedCounter,SymbolErrorCounter,SymbolErrorCounterExt,PortRcvErrorsExt,PortXmitWait
0xfc6a1c0300aa0001,0xfc6a1c0300aa0001,2,9,65535,882331,0xfffffffffffffffe,12
0xa088c20300000020,0xa088c20300000021,1,1,0,0,4,0
END_PM_INFO

START_CABLE_INFO
NodeGuid,PortGuid,PortNum,Vendor,PN,SN
0xfc6a1c0300aa0001,0xfc6a1c0300aa0001,1,"NVIDIA","MCA4J80-N003","MT23"
END_CABLE_INFO
"""


def test_db_csv() -> None:
    assert joined(DB_CSV) == {
        "dgx001 mlx5_0 - pod1-leaf1 port 1": "4x NDR", "dgx002 mlx5_0 - pod1-leaf1 port 2": "1x NDR",
    }  # fmt: skip
    found = read(DB_CSV)
    assert [(row.end.lid, row.could) for row in found.rows] == [
        (21, ""), (5, ""), (5, "could be 4X"), (22, "could be 4X"), (5, ""),
    ]  # fmt: skip
    assert [(row.end.port, row.state, row.disabled) for row in found.rows if row.peer is None] == [(3, "DOWN", True)]
    assert found.errors == {
        ("fc6a1c0300aa0001", 2): {"link_downed": 9, "symbol_error": 882331, "port_xmit_wait": 12},
        ("a088c20300000021", 1): {"link_downed": 1, "symbol_error": 0, "port_rcv_errors": 4, "port_xmit_wait": 0},
    }
    wider = DB_CSV.replace("LinkSpeedSup\n", "LinkSpeedSup,NMTU\n").replace(",3841\n", ",3841,5\n")
    wider = wider.replace("5\nEND", "4\nEND")
    assert [row.end.mtu for row in read(wider).rows if row.end.kind == "adapter"] == [4096, 2048]
    longer = read(DB_CSV.replace(",882331,", ",1234567890123456,")).errors
    assert longer["fc6a1c0300aa0001", 2]["symbol_error"] == 1234567890123456
    slower = read(DB_CSV.replace(",2,19,2048,5,4", ",2,19,1024,5,4")).rows
    assert {row.could for row in slower if row.lanes == 4 and row.peer} == {"could be NDR"}


def test_db_csv_without_some_sections() -> None:
    without_ports = re.sub(r"START_PORTS.*END_PORTS\n", "", DB_CSV, flags=re.DOTALL)
    assert joined(without_ports).keys() == joined(DB_CSV).keys()
    assert not read(re.sub(r"START_NODES.*END_NODES\n", "", DB_CSV, flags=re.DOTALL)).rows


@pytest.mark.parametrize(("above", "row"), [
    ("END_NODES", f'"{"x" * 200_000}",1,1,0x1,0x1,0x1,1'), ("NodeDesc,", ""),
    ("END_LINKS", "0xa088c20300000010,x,0xfc6a1c0300aa0001,9"),
    ("END_LINKS", "0xfc6a1c0300aa0001,9,0xa088c20300000010,"),
    ("END_LINKS", "0xfc6a1c0300aa0001,9,0x1,1"), ("END_LINKS", "0x1,1,0xfc6a1c0300aa0001,9"),
    ("END_PM_INFO", "0xfc6a1c0300aa0001,0xfc6a1c0300aa0001,x,9,9,9,9,9"),
])  # fmt: skip
def test_db_csv_with_a_row_that_is_none(above: str, row: str) -> None:
    text = DB_CSV.replace(above, f"{row}\n{above}", 1)
    assert joined(text) == joined(DB_CSV)
    assert read(text).errors == read(DB_CSV).errors


def test_db_csv_without_guids_of_ports_and_without_what_they_could() -> None:
    """A port whose GUID is 0 is known by its node."""
    found = read(DB_CSV.replace("0xa088c20300000011", "0x0").replace("3841", "0").replace(",2,19,", ",2,0,")).rows
    assert "a088c20300000010" in {row.end.guid for row in found}
    assert {row.could for row in found if row.lanes == 4} == {""}


def test_net_dump() -> None:
    assert joined(NET_DUMP) == {
        "dgx001 mlx5_0 - pod1-leaf1 1/1/1": "4x NDR",
        "dgx001 mlx5_1 - pod1-leaf1 1/2/1": "2x NDR",
        "pod1-leaf1 1/32/1 - pod1-spine1 1/7/2": "4x NDR",
    }
    ends = [row.peer and row.peer.lid for row in read(NET_DUMP.replace(": 21  ", ": N/A ")).rows]
    assert ends == [None, None, 22, 6, 5]
    named = [row.peer and row.peer.port for row in read(NET_DUMP.replace("00000011 : 1  :", "00000011 : HCA:")).rows]
    assert named == [1, None, 1, 14, 63]  # an adapter has one port, whatever it is called
    unlisted = read(NET_DUMP.replace(": 1/7/2  : 6", ": 9/9/9  : 6")).rows
    assert [row.peer and row.peer.port for row in unlisted] == [1, None, 1, None, 63]
    zero = re.sub(r':\s+:\s+:\s+: ""', ': 0x0000000000000000 :  :   : ""', NET_DUMP)
    assert "0x0000000000000000" in zero
    assert [row.peer and row.peer.port for row in read(zero).rows] == [1, None, 1, 14, 63]


@pytest.mark.parametrize(("old", "new", "ports"), [
    ("1/1/2   : 2 ", "1/1/2   : 9999", [1, 9999, 3, 63, 14]), ("1/1/2   : 2 ", "1/1/2   : 10000", [1, 3, 63, 14]),
    ("1/1/2   : 2 ", "1/1/2   : x", [1, 3, 63, 14]), ("00000012 : 1  :", "00000012 : 9999 :", [1, 2, 3, 63, 14]),
])  # fmt: skip
def test_numbers_of_ports(old: str, new: str, ports: list[int]) -> None:
    rows = read(NET_DUMP.replace(old, new)).rows
    assert [row.end.port for row in rows] == ports
    peers = [row.peer.port for row in rows if row.peer is not None]
    assert peers == ([1, 9999, 14, 63] if "9999 :" in new else [1, 1, 14, 63])


CHASSIS, NEAR = {"name": {"value": "leaf1"}}, {"id": {"type": "ifname", "value": "swp1"}}


@pytest.mark.parametrize(("chassis", "port", "many"), [
    (CHASSIS, NEAR, 1), ([CHASSIS], [NEAR], 1), ({"leaf1": {}}, NEAR, 1), (CHASSIS, {"descr": "swp1"}, 1),
    (CHASSIS, None, 0), (None, NEAR, 0), ({}, NEAR, 0), ({"id": {}}, NEAR, 0), (CHASSIS, {}, 0),
    (CHASSIS, {"id": {"type": "mac", "value": "x"}}, 0), ([CHASSIS, CHASSIS], NEAR, 0),
    (CHASSIS, {"id": {"type": "ifname", "value": 5}}, 0),
])  # fmt: skip
def test_neighbours_that_name_their_ports(chassis: object, port: object, many: int) -> None:
    text = json.dumps({"lldp": {"interface": [{"eth0": {"chassis": chassis, "port": port}}]}})
    assert len(read(text, "dgx1").rows) == many


@pytest.mark.parametrize(("many", "kind"), [(16, "adapter"), (17, "switch")])
def test_a_machine_with_many_neighbours_is_a_switch(many: int, kind: str) -> None:
    listed = [{f"eth{number}": {"chassis": CHASSIS, "port": NEAR}} for number in range(many)]
    assert {row.end.kind for row in read(json.dumps({"lldp": {"interface": listed}}), "dgx1").rows} == {kind}


def test_the_ports_of_a_leaf() -> None:
    """A small one too; its spines are no systems, and its management port is of another network."""
    far = {"swp1s0": ("gpu01", "eth0"), "swp2s0": ("gpu02", "eth0"), "swp40": ("spine0", "swp1"),
           "eth0": ("oob", "swp9")}  # fmt: skip
    listed = [{name: {"chassis": {node: {}}, "port": {"id": {"type": "ifname", "value": port}}}}
              for name, (node, port) in far.items()]  # fmt: skip
    rows = read(json.dumps({"lldp": {"interface": listed}}), "leaf01").rows
    assert {row.end.kind for row in rows} == {"switch"}
    assert [(row.peer.kind, row.peer.description) for row in rows if row.peer] == [
        ("adapter", "gpu01 eth0"), ("adapter", "gpu02 eth0"), ("switch", "spine0"),
    ]  # fmt: skip


def test_the_states_of_ports() -> None:
    """As health names them; of a port that has no link too."""
    text = NET_DUMP.replace("3    : ACT", "3    : INI").replace("63   : ACT", "63   : ARM")
    found = fabric_of([read(text), read(WHOLE.replace("Active", "ActDefer", 1).replace("Active", "Initialize", 1))])
    assert {found.shown(port): state.name for port, state in found.states.items()} == {
        "pod1-leaf1 1/1/1": "ACTIVE", "pod1-leaf1 1/1/2": "DOWN", "pod1-leaf1 1/2/1": "INIT",
        "pod1-leaf1 1/32/1": "ARMED", "pod1-spine1 1/7/2": "ACTIVE",
        "leaf1 port 1": "DOWN", "leaf1 port 17": "INIT", "leaf1 port 18": "ACTIVE", "n01 HCA-1": "ACTIVE",
    }  # fmt: skip


def test_iblinkinfo_of_unmanaged_switches() -> None:
    """Switches of one description differ by GUID; SHARP's port inside a switch is no adapter."""
    text = """\
CA: node1 HCA-1:
      0x506b4b0300000001      4    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2   17[  ] "SwitchX" ( )
CA: node2 HCA-1:
      0x506b4b0300000002      5    1[  ] ==( 4X         10.31 Gbps Active/  LinkUp)==>       3    1[  ] "SwitchX" (Could be 25.78125 Gbps)
CA: Mellanox Technologies Aggregation Node:
      0x506b4b0300000003      6    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       3   41[  ] "SwitchX" ( )
Switch: 0x506b4b0300000a10 SwitchX:
           2    1[  ] ==(                Down/ Polling)==>             [  ] "" ( )
           2   17[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       4    1[  ] "node1 HCA-1" ( )
           2   18[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       3   18[  ] "SwitchX" ( )
Switch: 0x506b4b0300000b10 SwitchX:
           3    1[  ] ==( 4X         10.31 Gbps Active/  LinkUp)==>       5    1[  ] "node2 HCA-1" (Could be 25.78125 Gbps)
           3   18[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2   18[  ] "SwitchX" ( )
           3   41[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       6    1[  ] "Mellanox Technologies Aggregation Node" ( )
"""  # noqa: E501
    assert joined(text) == {
        "node1 HCA-1 - SwitchX 506b4b0300000a10 port 17": "4x EDR",
        "node2 HCA-1 - SwitchX 506b4b0300000b10 port 1": "4x FDR10",
        "SwitchX 506b4b0300000a10 port 18 - SwitchX 506b4b0300000b10 port 18": "4x EDR",
    }


def test_adapters_with_two_ports_and_without_a_name() -> None:
    text = """\
CA     1  1 0x7cfe900300179b31 4x FDR - SW     9  1 0x0002c903006e29b0 ( 'dl380 mlx4_0' - 'MF0;sw1:SX6036/U1' )
CA     2  2 0x7cfe900300179b32 4x FDR - SW     9  2 0x0002c903006e29b0 ( 'dl380 mlx4_0' - 'MF0;sw1:SX6036/U1' )
CA     3  1 0x7cfe900300179b41 4x ??? - SW     9  3 0x0002c903006e29b0 ( 'MT25408 ConnectX Mellanox Technologies' - 'MF0;sw1:SX6036/U1' )
CA     4  1 0x7cfe900300179b51 4x undefined (16) - SW     9  4 0x0002c903006e29b0 ( 'localhost mlx5_0' - 'MF0;sw1:SX6036/U1' )
CA     5  1 0x7cfe900300179b61 4x FDR - SW     9  5 0x0002c903006e29b0 ( 'localhost mlx5_0' - 'MF0;sw1:SX6036/U1' )
SW     9  6 0x0002c903006e29b0 4x SDR                                    'MF0;sw1:SX6036/U1'
"""  # noqa: E501
    assert joined(text) == {
        "sw1 port 1 - dl380 mlx4_0": "4x FDR",
        "sw1 port 2 - dl380 mlx4_0 port 2": "4x FDR",
        "sw1 port 3 - MT25408 ConnectX Mellanox Technologies 7cfe900300179b41": "4x ",
        "sw1 port 4 - localhost mlx5_0 7cfe900300179b51": "4x ",
        "sw1 port 5 - localhost mlx5_0 7cfe900300179b61": "4x FDR",
    }


@pytest.mark.parametrize(
    ("text", "name"),
    [("25.78125 Gbps", "EDR"), ("25.78 Gbps", "EDR"), ("10.0 Gbps", "QDR"), ("10.0 Gbps or FDR10", "FDR10"),
     ("53.125", "HDR"), ("100", "NDR"), ("", ""), ("7", ""), ("nan", ""), ("101", "NDR"), ("101.01", "")],
)  # fmt: skip
def test_speeds_as_they_are_rounded(text: str, name: str) -> None:
    assert speed_of_lane(text) == name


def test_a_switch_without_a_lid_and_one_whose_head_is_cut() -> None:
    """No subnet manager has given LIDs; the links of what cannot be read are of no other switch."""
    text = """\
Switch\t41 "S-b8cef60300000001"\t\t# "leaf1" base port 0 lid  lmc 0
[1](1)\t"H-043f720300000011"[1](43f720300000011) \t\t# "n1 mlx5_0" lid -1 4xHDR
[2](2)\t"H-043f720300000012"[1](43f720300000012) \t\t# "n2 mlx5_0" lid  4xHDR
Switch\t41 "S-b8cef603
[3](3)\t"H-043f720300000013"[1](43f720300000013) \t\t# "n3 mlx5_0" lid 7 4xHDR
"""
    assert joined(text) == {"n1 mlx5_0 - leaf1 port 1": "4x HDR", "n2 mlx5_0 - leaf1 port 2": "4x HDR"}


LINES = st.sampled_from([*NET_DUMP.splitlines(), "{", '{"lldp": {"interface": 7}}', "dgx1,mlx5_0,leaf,1", "A -> B",
                         'Errors for "x"', "   GUID 0x1 port 1: [SymbolErrorCounter == 99]", "MQM9700 leaf",
                         "   P1 -4x-50G-> HCA dgx1 mlx5_0/P1", "# Port counters: Lid 4 port 17"])  # fmt: skip


@given(st.lists(LINES | st.text(max_size=80), max_size=12))
def test_anything_is_read_or_refused(lines: list[str]) -> None:
    text = "\n".join(lines)
    found: Fabric = fabric_of([read(text, "host")])
    judge(found)
    with contextlib.suppress(BadInput):
        judge(found, planned(text, "plan"))


HEADLESS = """\
      0xb8599f0300000001      4    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2   17[  ] "MF0;leaf1:MSB7700/U1" ( )
           2   17[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       4    1[  ] "n02 HCA-1" ( )
           2   18[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       1    1[  ] "n01 HCA-1" ( )
      0xb8599f0300000002      1    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2   18[  ] "MF0;leaf1:MSB7700/U1" ( )
"""  # noqa: E501 -- as it is printed
QUOTED = """\
   Switch  24 "S-0008f10400000001"         # "leaf1" base port 0 lid 2 lmc 0
   [17]    "H-0008f10400000010"[1](8f10400000011)         # "n02 HCA-1" lid 4 4xEDR
   [18]    "H-0008f10400000020"[1](8f10400000021)         # "n01 HCA-1" lid 1 4xEDR
"""
JSON0 = """{"lldp": [{"interface": [
 {"name": "rdma0", "chassis": [{"id": [{"type": "mac", "value": "02:00:00:00:00:01"}], "name": [{"value": "leaf1"}]}],
  "port": [{"id": [{"type": "ifname", "value": "swp17"}], "descr": [{"value": "to n02"}]}]},
 {"name": "rdma1", "chassis": [{"id": [{"type": "mac", "value": "02:00:00:00:00:01"}], "name": [{"value": "leaf1"}]}],
  "port": [{"id": [{"type": "mac", "value": "02:00:00:00:00:02"}], "descr": [{"value": "swp18"}]}]}]}]}"""


def only(kind: str) -> str:
    """The blocks that --cas-only or --switches-only leaves."""
    blocks = re.split(r"^(?=CA|Switch)", WHOLE, flags=re.MULTILINE)
    return "".join(block for block in blocks if block.startswith(kind))


WHOLE = """\
CA: n02 HCA-1:
      0xb8599f0300000001      4    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2   17[  ] "leaf1" ( )
Switch: 0xb8599f0300000003 leaf1:
           2    1[  ] ==(                Down/ Polling)==>             [  ] "" ( )
           2   17[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       4    1[  ] "n02 HCA-1" ( )
           2   18[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       1    1[  ] "n01 HCA-1" ( )
CA: n01 HCA-1:
      0xb8599f0300000002      1    1[  ] ==( 4X      25.78125 Gbps Active/  LinkUp)==>       2   18[  ] "leaf1" ( )
"""
HOSTS = """\
Ca      1 "H-0008f10400000010"          # "n02 HCA-1"
[1]     "S-0008f10400000001"[17]                # lid 4 lmc 0 "leaf1" lid 2 4xEDR
Ca      1 "H-0008f10400000020"          # "n01 HCA-1"
[1](8f10400000021)      "S-0008f10400000001"[18](8f10400000001)         # lid 1 lmc 0 "leaf1" lid 2 4xEDR
"""
FORMS = {"filtered": HEADLESS, "quoted": QUOTED, "json0": JSON0, "adapters": only("CA"), "switches": only("Switch"),
         "hosts": HOSTS, "quoted without GUIDs": re.sub(r"\(8f\w+\)", "", QUOTED),
         "adapters without LIDs": re.sub(r" [124]   ( ?1\[|1[78]\[)", r" 0   \1", only("CA")),
         "cut off": WHOLE.partition("           2   18")[0] + WHOLE[WHOLE.index("CA: n01") :]}  # fmt: skip


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_what_people_keep_of_an_output(text: str) -> None:
    """Lines without the heads of their nodes, a page's indented block, lldpctl's other JSON."""
    built = fabric_of([read(text, "n02")])
    assert [switch.name for switch in built.switches.values()] == ["leaf1"]
    assert len(built.adapters) == len(built.cables) == 2
    assert {port[1] for port in built.at if port[0] in built.switches} == {17, 18}
