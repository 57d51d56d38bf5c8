"""iblinkinfo, perfquery, ibqueryerrors, ibdev2netdev: what they tell of links, and that totals alone are no fault."""

from __future__ import annotations

from pathlib import Path

import pytest
from readers_text import one, unread

from dgxcheck.assessment import Request, assess
from dgxcheck.facts.missing import Json
from dgxcheck.readers.any_text import READERS
from dgxcheck.readers.fabric.any_fabric import read
from dgxcheck.readers.known import read_known
from dgxcheck.readers.network import adapters, counters, fabric, hcas, settings

LINKS = """\
CA: gpu01 mlx5_0:
      0xb8599f0300e8dd3a     12    1[  ] ==( 4X        53.125 Gbps Active/  LinkUp)==>       1   17[  ] "leaf01" ( )
Switch: 0xb8599f0300aaaaaa leaf01:
           1    1[  ] ==( 4X        25.78125 Gbps Active/  LinkUp)==>      13    1[  ] "gpu02" ( Could be 53.125 Gbps)
           1    2[  ] ==(                Down/ Polling)==>             [  ] "" ( )
           1    3[  ] ==( 4X           2.5 Gbps   Init/  LinkUp)==>      14    1[  ] "gpu03" ( )
CA: gpu02 mlx5_0:
  0xb8599f0300e8dd3b   13   1[  ] ==( 4X   25.78125 Gbps Active/ LinkUp)==>   1   1[  ] "leaf01" ( Could be 53.125 Gbps)
"""
COUNTERS = """\
# Port counters: Lid 12 port 1 (CapMask: 0x5A00)
PortSelect:......................1
CounterSelect:...................0x0000
SymbolErrorCounter:..............900000
LinkDownedCounter:...............4
PortXmitData:....................4294967295
"""
ERRORS = """\
Errors for "gpu02 mlx5_0"
   GUID 0x1070fd0300370ea2 port ALL: [LinkDownedCounter == 25] [PortRcvErrors == 26]
   GUID 0x1070fd0300370ea2 port 1: [LinkDownedCounter == 25 (25.000)] [PortRcvErrors == 26] [PortXmitWait == 1468]
## Summary: 84 nodes checked, 1 bad nodes found
"""
PORT = """\
CA 'mlx5_3'
\tPort 1:
\t\tState: Active
\t\tPhysical state: LinkUp
\t\tBase lid: 12
\t\tSM lid: 1
\t\tLink layer: InfiniBand
"""
INTERFACES = """\
mlx5_0 port 1 ==> ib0 (Up)
mlx5_1   port  1  ==>  ib1    (Down)  # not configured
0000:5e:00.0 mlx5_2 (MT4123 - MCX653105A) CX653105A fw 20.31.1014 port 1 (DOWN  ) ==> ib2 (Down)
"""
PORTS = """\
PortInfo:
# Port info: Lid 2 port 24
LinkState:.......................Down
PhysLinkState:...................Disabled
"""
WIRING = """\
CA   134  1 0x7cfe900300000bde 4x EDR - SW  1719 10 0x7cfe900300000bb0 ( 'gpu01 mlx5_0' - 'leaf01' )
SW  2052 37 0x506b4b0300000740 4x ???                                    'leaf02'
"""
LINK_JSON = """\
# mlxlink -d /dev/mst/mt4119_pciconf0 -p 1 --json
{
   "result" : {
      "output" : {
         "Operational Info" : { "Physical state" : "Polling", "State" : "Polling", "Width" : "0x" },
         "Troubleshooting Info" : { "Recommendation" : "Cable is unplugged", "Status Opcode" : "1024" }
      }
   }
}
"""
QUERY = """\
Device #1:
----------
Device type:    ConnectX7
Configurations:                              Next Boot
        LINK_TYPE_P1                         IB(1)
"""


def bad(text: str, folder: Path) -> list[tuple[str, str, str]]:
    path = folder / "text.txt"
    path.write_text(text)
    findings = assess(str(path), Request()).findings
    return [(each.id, each.subject.name, each.judgement.fault.word) for each in findings if each.judgement.fault]


@pytest.mark.parametrize(
    ("read", "text"),
    [(fabric.read_iblinkinfo, LINKS), (counters.read_port_counters, COUNTERS), (counters.read_port_counters, ERRORS),
     (hcas.read_ibdev2netdev, INTERFACES), (settings.read_mlxconfig, QUERY),
     (read_known, PORTS), (read_known, WIRING)],
)  # fmt: skip
def test_every_line_is_read_and_by_one_reader(read: object, text: str) -> None:
    found = [part for reader in READERS for part in reader(tuple(text.splitlines()))]
    assert len(found) == 1
    assert unread(found, text) == []


def test_counters_without_an_error() -> None:
    text = ERRORS.splitlines()[-1].replace(" 1 bad", " 0 bad")
    (fact,) = one(counters.read_port_counters, text).facts.values()
    assert isinstance(fact, dict)
    assert fact["outcome"] == "pass"
    assert read(text).errors  # fabric reads it beside the cables
    assert counters.read_port_counters((text.replace("84 nodes", "0 nodes"),)) == ()

def test_a_link_below_what_both_ends_can_do_and_one_without_subnet_manager(tmp_path: Path) -> None:
    polls = bad(LINKS.replace("Init/  LinkUp", "Init/  Polling"), tmp_path)
    assert polls == [("tools.reports", "leaf01/1", "port-slow")]
    assert bad(LINKS, tmp_path) == [
        ("tools.reports", "leaf01/1", "port-slow"), ("tools.reports", "leaf01/3", "no-subnet-manager"),
    ]  # fmt: skip


@pytest.mark.parametrize("state", ["Down", "Initializing", "Armed"])
def test_a_port_with_a_link_waits_for_the_subnet_manager(state: str, tmp_path: Path) -> None:
    """No cable is at fault where both ends see each other."""
    text = PORT.replace("Active", state).replace("lid: 12", "lid: 65535")
    assert [fault for _, _, fault in bad(text, tmp_path)] == ["no-subnet-manager"]


def test_a_link_is_that_of_the_node_that_is_described(tmp_path: Path) -> None:
    hca = LINKS.splitlines()[1].replace("( )", "( Could be 106.25 Gbps)")
    assert bad(f"CA: gpu01 mlx5_0:\n{hca}\n", tmp_path) == [("tools.reports", "gpu01.mlx5_0/1", "port-slow")]
    row = hca.replace("dd3a     12", 'dd3a "   gpu07 mlx5_2"     12')
    assert bad(row, tmp_path) == [("tools.reports", "gpu07.mlx5_2/1", "port-slow")]
    assert bad(hca, tmp_path) == [("tools.reports", "lid12/1", "port-slow")]


def test_a_device_that_the_class_lists_and_that_is_gone(tmp_path: Path) -> None:
    gone = "ibpanic: [4242] main: stat of IB device 'mlx5_8' failed: No such file or directory\n"
    assert bad(PORT + gone, tmp_path) == [("tools.reports", "mlx5_8", "hca-unlisted")]
    assert bad(gone, tmp_path) == [("tools.reports", "mlx5_8", "hca-unlisted")]


@pytest.mark.parametrize(
    ("text", "name", "outcome"),
    [
        ("mlxlink -d /dev/mst/mt9_cr0 -p 1\nOperational Info\n----\nState : Active\nSpeed : 25GbE", "mt9_cr0", "pass"),
        ("Operational Info\n----\nState : Polling\nPhysical state : ETH_AN_FSM", "HCA", "note"),
        ("Operational Info\nState : Active\nStatus Opcode : 15\nRecommendation : Bad signal integrity", "HCA", "warn"),
        ("Operational Info\nState : Polling\nStatus Opcode : 1024\nRecommendation : Cable is unplugged", "HCA",
         "unknown"),
        ("Operational Info\nState : Disable\nStatus Opcode : 1\nRecommendation : closed by command", "HCA", "unknown"),
        ("Operational Info\nState : Polling\nStatus Opcode : 21\nRecommendation : Down by a MAD", "HCA", "unknown"),
        ("Operational Info\nState : Active\nStatus Opcode : 1023\nRecommendation : not available", "HCA", "note"),
        (LINK_JSON.replace("1024", "0").partition("}\n")[0], "mt4119_pciconf0", "note"),
    ],
)  # fmt: skip
def test_mlxlink_of_a_port_that_is_no_rdma_device(text: str, name: str, outcome: str) -> None:
    found = one(adapters.read_mlxlink, text)
    assert unread([found], text) == []
    ((key, report),) = found.facts.items()
    assert key == f"stated report {name} mlxlink-status"
    assert isinstance(report, dict)
    assert report["outcome"] == outcome


@pytest.mark.parametrize(
    ("state", "code", "fault"),
    [
        ("Polling", 1032, "port-module"), ("Polling", 1030, "port-module"), ("Polling", 16, "port-module"),
        ("Polling", 1034, "port-disabled"), ("Disable", 1, "port-disabled"), ("Polling", 2, "port-down"),
        ("Polling", 18, "port-disabled"), ("Polling", 22, "port-disabled"), ("Active", 15, "port-errors"),
    ],
)  # fmt: skip
def test_whose_a_status_of_mlxlink_is(state: str, code: int, fault: str) -> None:
    text = f"mlxlink -d mlx5_2 -p 1\nOperational Info\nState : {state}\nStatus Opcode : {code}\nRecommendation : x"
    report = one(adapters.read_mlxlink, text).facts["stated report mlx5_2/1 mlxlink-status"]
    assert isinstance(report, dict)
    assert report["fault"] == fault


@pytest.mark.parametrize(
    ("rows", "rate"),
    [
        (["Speed : IB-HDR", "Width : 4x"], "200 Gb/sec (4X HDR)\n"), (["Speed : IB-HDR"], None), (["Width : 4x"], None),
        (["Speed : IB-XXR", "Width : 4x"], None),
    ],
)  # fmt: skip
def test_a_rate_needs_speed_and_width(rows: list[str], rate: str | None) -> None:
    head = ["mlxlink -d mlx5_0 -p 1", "Operational Info", "State : Active"]
    facts = one(adapters.read_mlxlink, "\n".join([*head, *rows])).facts
    assert facts.get("text /sys/class/infiniband/mlx5_0/ports/1/rate") == rate
    layer = "InfiniBand\n" if rows[0] == "Speed : IB-HDR" else None
    assert facts.get("text /sys/class/infiniband/mlx5_0/ports/1/link_layer") == layer


@pytest.mark.parametrize(
    ("powers", "width", "dark"),
    [
        ("0.9,-40,0.8,1.0 [-6.5..5]", "4x", "-40 at lane 2"),
        ("0.9,-9.1,-40,1.0 [-6.5..5]", "4x", "-9.1 at lane 2, -40"),
        ("0.9,-40,0.8,1.0 [-6.5..5]", "N/A", "-40 at lane 2"),
        ("0.9,0.7,0.8,1.0 [-6.5..5]", "4x", ""), ("-40,-40,-40,-40 [-6.5..5]", "4x", ""),
        ("0.9,0.9,0.8,1.0,-40,-40,-40,-40 [-6.5..5]", "4x", ""), ("N/A", "4x", ""), ("0,0,0,0 [0..0]", "4x", ""),
    ],
)  # fmt: skip
def test_lanes_without_light_beside_others(powers: str, width: str, dark: str) -> None:
    text = (
        f"mlxlink -d mlx5_0 -m\nOperational Info\nState : Active\nWidth : {width}\nModule Info\n"
        f"Rx Power Current [dBm] : {powers}"
    )
    found = one(adapters.read_mlxlink, text).facts.get("stated report mlx5_0/1 mlxlink-dark")
    assert (found is not None) == bool(dark)
    if isinstance(found, dict):
        assert (found["outcome"], found["fault"]) == ("warn", "port-errors")
        assert dark in str(found["text"])


def test_counters_that_are_zero_pass_and_details_are_no_files() -> None:
    text = "# PortRcvErrorDetails counters: Lid 7 port 1\nPortLocalPhysicalErrors:.........{}\n"
    (report,) = one(counters.read_port_counters, text.format(0)).facts.values()
    assert isinstance(report, dict)
    assert report["outcome"] == "pass"
    ((key, report),) = one(counters.read_port_counters, text.format(3)).facts.items()
    assert key.startswith("stated report lid7/1")
    assert isinstance(report, dict)
    assert "PortLocalPhysicalErrors 3" in str(report["text"])


def test_totals_alone_are_no_fault(tmp_path: Path) -> None:
    assert bad(COUNTERS, tmp_path) == bad(ERRORS, tmp_path) == []


def test_totals_are_noted_with_their_port() -> None:
    ((key, report),) = one(counters.read_port_counters, ERRORS).facts.items()
    assert key.startswith("stated report 0x1070fd0300370ea2/1 ")
    assert isinstance(report, dict)
    assert report["outcome"] == "note"
    assert "link_downed 25, port_rcv_errors 26 of gpu02 mlx5_0" in str(report["text"])


def test_counters_are_those_of_the_port_with_that_lid() -> None:
    facts = {**one(hcas.read_ibstat, PORT).facts, **one(counters.read_port_counters, COUNTERS).facts}
    files = counters.files_of(facts)
    base = "/sys/class/infiniband/mlx5_3/ports/1/counters"
    assert files[f"text {base}/symbol_error"] == "900000\n"
    assert files[f"names {base}"] == ["link_downed", "symbol_error"]
    others: tuple[Json, ...] = ("0xd\n", "x\n", {"missing": "denied", "detail": ""})
    for lid in others:
        assert counters.files_of({key: lid if key.endswith("/lid") else fact for key, fact in facts.items()}) == {}


def test_counters_of_two_ports_and_a_member_that_counts_nothing() -> None:
    two = COUNTERS + COUNTERS.replace("Lid 12 port 1", "Lid 13 port 2").replace("..4\n", "..0x4\n")
    found = [*counters.errors_by_lid(two.splitlines())]
    assert [row[:2] for row in found] == [(12, 1), (13, 2)]
    assert one(counters.read_port_counters, two).facts["stated port-counters 13 2"] == {"symbol_error": 900000}


@pytest.mark.parametrize(("rate", "warned"), [("1e-12", False), ("1.1e-12", True), ("N/A", False)])
def test_bit_errors_behind_the_correction(rate: str, warned: bool) -> None:
    text = f"mlxlink -d mlx5_2 -p 1 -c\nOperational Info\nState : Active\nEffective Physical BER : {rate}"
    assert ("stated report mlx5_2/1 mlxlink-errors" in one(adapters.read_mlxlink, text).facts) == warned


@pytest.mark.parametrize(("count", "down", "faults"), [
    (4, 1, {"port-down"}), (3, 1, {""}), (4, 2, {""}),
])  # fmt: skip
def test_one_interface_of_several_is_down(count: int, down: int, faults: set[str]) -> None:
    """Of four at least; another kind of interface is not among them."""
    rows = "".join(f"mlx5_{n} port 1 ==> ib{n} ({'Down' if n < down else 'Up'})\n" for n in range(count))
    facts = one(hcas.read_ibdev2netdev, f"{rows}mlx5_9 port 1 ==> eth9 (Down)\n").facts
    found = {key.split()[2]: fact["fault"] for key, fact in facts.items() if isinstance(fact, dict)}
    assert found.pop("mlx5_9/1") == ""
    assert {*found.values()} == faults


def test_what_mlxlink_says_as_json_of_a_device_of_mst() -> None:
    found = one(adapters.read_mlxlink, LINK_JSON)
    assert unread([found], LINK_JSON) == []
    (report,) = found.facts.values()
    assert isinstance(report, dict)
    assert (report["fault"], report["text"]) == ("port-module", "status 1024: Cable is unplugged")


def test_an_interface_that_is_down_says_nothing_of_its_port(tmp_path: Path) -> None:
    facts = one(hcas.read_ibdev2netdev, INTERFACES).facts
    states = {key.split("/")[4]: fact for key, fact in facts.items() if key.endswith("/state")}
    assert states == {"mlx5_0": "4: ACTIVE\n", "mlx5_2": "1: DOWN\n"}
    rows = "".join(f"mlx5_{n} port 1 ==> ib{n} ({'Up' if n else 'Down'})\n" for n in range(4))
    for text, expected in ((rows, {"UNKNOWN"}), (f"{rows}\n{PORT.replace('mlx5_3', 'mlx5_0')}", {"SKIP"})):
        (tmp_path / "text.txt").write_text(text)
        findings = assess(str(tmp_path / "text.txt"), Request()).findings
        assert {each.status.name for each in findings if each.id == "tools.reports"} == expected


@pytest.mark.parametrize(
    ("physical", "lid", "finding"),
    [("Polling", 0, True), ("Polling", 868, True), ("Disabled", 0, False), ("Disabled", 868, True),
     ("Disabled", 65535, False)],
)  # fmt: skip
def test_a_port_alone_that_is_down(physical: str, lid: int, finding: bool, tmp_path: Path) -> None:
    text = PORT.replace("Active", "Down").replace("LinkUp", physical).replace("lid: 12", f"lid: {lid}")
    assert [fault for _, _, fault in bad(text, tmp_path)] == (
        ["port-disabled" if physical == "Disabled" else "port-down"] if finding else []
    )


def test_links_without_lids_are_each_their_own() -> None:
    """Where no subnet manager gave them, all are 0."""
    row = '  0x2 "{0}" 0 1[  ] ==( 4X 25.78125 Gbps Initialize/ LinkUp)==> 0x3 0 1[  ] "{1}" ( Could be 53.125 Gbps)\n'
    text = "".join(f"Switch: 0x0002c9020000000{at} leaf{at}:\n" + row.format(f"leaf{at}", f"n{at}") for at in (1, 2))
    found = one(fabric.read_iblinkinfo, text).facts
    assert [key.split()[2] for key in found] == ["leaf1/1", "leaf2/1"]
