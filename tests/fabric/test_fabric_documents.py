"""What fabric reads and writes: plans, topology files, LLDP, Slurm's tree, and large fabrics in time."""

from __future__ import annotations

import gzip
import json
import random
import re
import time
from collections.abc import Mapping
from pathlib import Path

import pytest
from fabrics import FAULTS, KINDS, Fabric, Kind, another_leaf, judged, within

from dgxcheck.cli import main
from dgxcheck.fabric.judge import judge
from dgxcheck.fabric.model import fabric_of
from dgxcheck.fabric.reading import outputs
from dgxcheck.readers.fabric.any_fabric import read
from dgxcheck.readers.fabric.plan import planned


def test_a_plan_of_more_than_is_there(tmp_path: Path) -> None:
    """Port 200 is none of cage 2."""
    fabric = Fabric("fat", 40, "4xNDR")
    more = "dgx000,mlx5_9,leaf000,200\n" + "".join(
        f"dgx77{host},mlx5_{number},leaf009,{40 + 2 * host + number}\n" for host in (7, 8) for number in (0, 1))
    plan = planned(fabric.plan() + more, "plan")
    said = {finding.message for finding in judged(fabric, plan).findings}
    assert said == {
        "dgx[777-778] are not in the fabric; 2 cables planned for each",
        "dgx000 mlx5_9 is not in the fabric; it belongs to leaf000 port 200",
    }  # fmt: skip


@pytest.mark.parametrize("label", ["{0}", "1/{1}/{2}", "{1}/{2}", "sw{1}p{2}"])
def test_a_plan_names_ports_by_number_or_cage(label: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """1/10/2 of a QM9700 is port 20. A spreadsheet begins its csv with a byte order mark."""
    fabric = Fabric("rails", 20, "4xNDR")
    port = re.compile(r"(?<=,)P?(\d+)(?=$|,)", flags=re.MULTILINE)
    text = port.sub(lambda match: label.format(match[1], (int(match[1]) + 1) // 2, 2 - int(match[1]) % 2),
                    fabric.plan())  # fmt: skip
    (tmp_path / "plan.csv").write_text(f"\ufeff{text}".replace("\n", "\r\n"))
    (tmp_path / "ib.txt").write_text(fabric.discovered())
    assert main(["fabric", "--plan", str(tmp_path / "plan.csv"), str(tmp_path / "ib.txt")]) == 0
    for text in (port.sub(lambda match: str(int(match[1]) + 1), fabric.plan()),
                 port.sub(lambda match: str(int(match[1]) * 2), fabric.plan())):  # fmt: skip
        (tmp_path / "plan.csv").write_text(text)
        assert main(["fabric", "--plan", str(tmp_path / "plan.csv"), str(tmp_path / "ib.txt")]) == 3
        assert "the plan counts ports otherwise: " in capsys.readouterr().err


@pytest.mark.parametrize(("name", "other"), [
    ("leaf003", "r12-ib-07"), ("leaf003", "Quantum-2 Mellanox Technologies"), ("dgx007", "gpu7.example.com"),
])  # fmt: skip
def test_what_has_another_name_is_known_by_its_cables(name: str, other: str) -> None:
    """A swap behind it is found as well."""
    fabric = Fabric("fat", 40)
    plan = planned(fabric.plan(), "plan")
    fabric.swap(("dgx007 mlx5_1", 1), ("dgx013 mlx5_1", 1))
    text = fabric.discovered().replace(name, other)
    renamed, swapped = judge(fabric_of([read(text)]), plan).findings
    assert swapped.ends[:2] == (f"{other} mlx5_1" if "dgx" in name else "dgx007 mlx5_1", "dgx013 mlx5_1")
    assert renamed.fault.word == "plan-name"
    assert renamed.message == f"1 node with another name than in the plan, by the cables: {name} is {other}"


@pytest.mark.parametrize("kind", KINDS)
def test_an_earlier_output_is_a_plan(kind: Kind, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As the csv is, with rates: also of a fabric that is slow as a whole now."""
    fabric = Fabric(kind, 20)
    (tmp_path / "earlier.txt").write_text(fabric.discovered())
    (tmp_path / "plan.csv").write_text(fabric.plan())
    chance = random.Random(3)
    for fault in FAULTS:
        fault(fabric, chance)
    (tmp_path / "ib.txt").write_text(fabric.discovered())
    messages = []
    for name in ("earlier.txt", "plan.csv"):
        main(["fabric", "--format", "json", "--plan", str(tmp_path / name), str(tmp_path / "ib.txt")])
        document = json.loads(capsys.readouterr().out)
        messages.append({found["message"] for found in document["findings"] if found["fault"] != "port-slow"})
    assert messages[0] == messages[1]
    assert len(messages[0]) == len(FAULTS) - 2
    fabric = Fabric(kind, 20, "4xQDR")
    (tmp_path / "ib.txt").write_text(fabric.discovered())
    assert main(["fabric", "--plan", str(tmp_path / "earlier.txt"), str(tmp_path / "ib.txt")]) == 1
    assert "4x QDR, 100 Gbit/s planned" in capsys.readouterr().out
    (tmp_path / "earlier.txt").write_text(fabric.discovered()[:-30])
    assert main(["fabric", "--plan", str(tmp_path / "earlier.txt"), str(tmp_path / "ib.txt")]) == 3
    assert "ends within a row" in capsys.readouterr().err


def test_what_a_cut_output_does_not_hold_is_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = Fabric("rails", 32).discovered()
    cut = text.index("dgx031 mlx5_2")
    (tmp_path / "ib.txt").write_text(text[: cut + 3])
    assert main(["fabric", str(tmp_path / "ib.txt")]) == 3
    out = capsys.readouterr().out
    assert ("cable-missing" in out, "ends within a row" in out) == (False, True)
    (tmp_path / "ib.txt").write_text(text[: text.rindex("\n", 0, cut) + 1])
    assert main(["fabric", str(tmp_path / "ib.txt")]) == 2


def test_plugs_between_planes_are_no_split_fabric() -> None:
    fabric = Fabric("planes", 2)
    fabric.swap(("dgx000 mlx5_0", 1), ("dgx000 mlx5_3", 1))
    assert [finding.fault.word for finding in judged(fabric).findings] == ["cable-swapped"]


def test_a_topology_file_is_a_plan_with_rates() -> None:
    fabric = Fabric("fat", 8)
    fabric.rates = dict.fromkeys(fabric.up, "4xQDR")
    lines: dict[str, list[str]] = {}
    for (node, _), (switch, port) in fabric.planned.items():
        if " " in node:
            host, name = node.split()
            lines.setdefault(switch, []).append(f"   P{port} -4x-25G-> HCA_mlx5_3 {host} {name}/P1")
    text = "\n".join(line for switch, rows in lines.items() for line in (f"MQM8700 {switch}", *rows))
    assert [finding.message for finding in judged(fabric, planned(text, "topo")).findings] == [
        f"leaf00{leaf}: 16 links to adapters at 4x QDR, 100 Gbit/s planned" for leaf in range(2)
    ]
    fabric.rates = {("dgx003 mlx5_1", 1): "4xQDR"}
    (finding,) = judged(fabric, planned(text, "topo")).findings
    assert finding.message == "dgx003 mlx5_1 - leaf000 port 14: 4x QDR, 100 Gbit/s planned"


def test_the_second_port_of_an_adapter_is_named() -> None:
    """The first has the name of the adapter alone."""
    text = "MQM8700 leaf0\n   P1 -4x-50G-> HCA dgx0 mlx5_0/P1\n   P2 -> HCA dgx0 mlx5_0/P2\n"
    plan = planned(text, "topo")
    said = [(cable.peer.adapter, cable.lanes, cable.lane_gbit) for cable in plan]
    assert said == [("mlx5_0", 4, 50), ("mlx5_0 port 2", 0, 0)]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "holds no cable"),
        ("a,b,c\n", "line 1: not a cable"),
        ("dgx0,mlx5_0,leaf0,x\n", "line 1: not a cable"),
        ("dgx0,mlx5_0,leaf0,1\ndgx1,mlx5_0,leaf0,1\n", "two cables are planned for leaf0 port 1"),
        ("dgx0,mlx5_0,leaf0,1\ndgx0,mlx5_0,leaf0,2\n", "two cables are planned for dgx0 mlx5_0"),
        ("MQM8700 leaf0\n   P1 -4x-50G-> HCA dgx0 mlx5_0/P1\n   P2 -4x-50G->\n", "line 3: neither a node nor a cable"),
        ("x,mlx5_0,y,1\n", "names no switch and system of this fabric"),
    ],
)
def test_a_plan_that_is_none_is_refused(
    text: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ib.txt").write_text(Fabric("fat", 8).discovered())
    (tmp_path / "plan").write_text(text)
    assert main(["fabric", "--plan", str(tmp_path / "plan"), str(tmp_path / "ib.txt")]) == 3
    assert why in capsys.readouterr().err


def test_the_papers_arithmetic(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ib.txt.gz").write_bytes(gzip.compress(Fabric("fat", 124).discovered().encode()))
    assert main(["fabric", str(tmp_path / "ib.txt.gz")]) == 0
    assert capsys.readouterr().out == (
        "PASS: 124 systems, 496 adapters, 31 leaves, 16 spines: nothing found\n"
        "dgx[000-123]: all 4 adapters of a system on one leaf\n"
        "bisection 6,200 GB/s, both directions; 6,012 GB/s of payload at 64/66\n"
        "rates: adapters 496 at 4x EDR; between switches 496 at 4x EDR\n"
        "\n"
        "Leaf           Systems  Adapters  Uplinks  Over-subscription\n"
        "leaf[000-030]  4        16        16       1:1\n"
    )


def test_the_table_of_many_rails_fits_a_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ib.txt").write_text(Fabric("rails", 240).discovered())
    assert main(["fabric", str(tmp_path / "ib.txt")]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split("  ")[0] == "leaf000r0 and 119 more"
    assert max(map(len, lines)) <= 80
    assert main(["fabric", "-v", str(tmp_path / "ib.txt")]) == 0
    assert capsys.readouterr().out.count("\nleaf0") == 120


def test_counters_without_cables_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    guid = f"{Fabric('fat', 8).guids()['leaf001']:#x}"
    (tmp_path / "errors").write_text(f'Errors for 0x1 "leaf001"\n   GUID {guid} port 20: [SymbolErrorCounter == 990]\n')
    assert main(["fabric", str(tmp_path / "errors")]) == 3
    assert "errors: error counters, but no cable; give the output of ibnetdiscover -p too" in capsys.readouterr().out
    (tmp_path / "ib.txt").write_text(Fabric("fat", 8).discovered())
    assert main(["fabric", str(tmp_path / "errors"), str(tmp_path / "ib.txt")]) == 1
    assert "Not read" not in capsys.readouterr().out


def test_a_file_of_something_else_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ib.txt").write_text(Fabric("fat", 8).discovered())
    (tmp_path / "other").write_text("hello\n")
    assert main(["fabric", str(tmp_path / "ib.txt"), str(tmp_path / "other")]) == 3
    assert "Not read:\n" in capsys.readouterr().out
    (tmp_path / "plan").write_text(Fabric("fat", 8).plan())
    assert main(["fabric", str(tmp_path / "ib.txt"), str(tmp_path / "plan")]) == 3
    assert "plan: a plan of 64 cables; give it as --plan FILE\n" in capsys.readouterr().out
    assert main(["fabric", str(tmp_path / "none")]) == 3
    assert "none: cannot be read: No such file or directory" in capsys.readouterr().err
    monkeypatch.setenv("PATH", str(tmp_path))
    program = tmp_path / "ibnetdiscover"
    program.write_text("#!/bin/sh\n/bin/sleep 60\n")
    program.chmod(0o755)
    assert main(["fabric", "--timeout", "1"]) == 3
    assert "ibnetdiscover did not end within 1 s" in capsys.readouterr().err
    program.write_text("#!/bin/sh\n/bin/echo 'ibwarn: no port' >&2\nexit 1\n")
    assert main(["fabric"]) == 3
    assert "ibnetdiscover failed: ibwarn: no port" in capsys.readouterr().err
    program.write_text(f"#!/bin/sh\n/bin/cat {tmp_path}/ib.txt\n")
    assert main(["fabric"]) == 0


def lldp(fabric: Fabric) -> Mapping[str, str]:
    """A file per host, as lldpctl writes it there; with one interface it is no list."""
    found: dict[str, list[object]] = {}
    for (node, _), (switch, port) in fabric.up.items():
        if " " in node:
            host, name = node.split()
            entry = {"chassis": {switch: {"id": {"type": "mac", "value": "0c:42:a1:00:00:01"}}},
                     "port": {"id": {"type": "ifname", "value": f"swp{port}"}, "descr": f"swp{port}"}}  # fmt: skip
            found.setdefault(host, []).append({name: {"via": "LLDP", **entry}})
    return {host: json.dumps({"lldp": {"interface": rows if len(rows) > 1 else rows[0]}})
            for host, rows in found.items()}  # fmt: skip


def test_roce_by_lldp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fabric = Fabric("rails", 20)
    planted = within(fabric, random.Random(2))
    for host, text in lldp(fabric).items():
        (tmp_path / f"{host}.json").write_text(text)
    assert main(["fabric", "--format", "json", *map(str, sorted(tmp_path.iterdir()))]) == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["fault"] == planted[0]
    assert planted[1] <= {*finding["ends"]}
    fabric = Fabric("rails", 20)
    del fabric.up["dgx005 mlx5_4", 1]
    for host, text in lldp(fabric).items():
        (tmp_path / f"{host}.json").write_text(text if host != "dgx007" else '{\n  "lldp": {}\n}\n')
    assert main(["fabric", *map(str, sorted(tmp_path.iterdir()))]) == 2
    out = capsys.readouterr().out
    assert "dgx005 mlx5_4 is not in the fabric; it belongs to leaf000r4 swp6\n" in out
    assert "dgx007.json: lldpctl heard no neighbor; look whether lldpd runs here" in out


@pytest.mark.parametrize(("small", "ends"), [
    (["dgx005 mlx5_4"], ("leaf000r4 swp6", "dgx005 mlx5_4")),
    ([f"dgx005 mlx5_{name}" for name in range(8)], ("dgx005",)), ([f"dgx{host:03} mlx5_7" for host in range(20)], ()),
])  # fmt: skip
def test_frames_that_a_switch_port_does_not_pass(small: list[str], ends: tuple[str, ...], tmp_path: Path) -> None:
    """Maximum frame size, IEEE 802.3 TLV; that of a rail is compared within it."""
    for host, text in lldp(Fabric("rails", 20)).items():
        document = json.loads(text)
        for name, facts in (pair for row in document["lldp"]["interface"] for pair in row.items()):
            facts["port"]["mfs"] = "1522" if f"{host} {name}" in small else "9236"
        (tmp_path / f"{host}.json").write_text(json.dumps(document))
    found = outputs([*map(str, sorted(tmp_path.iterdir()))])
    findings = judge(fabric_of(found.texts)).findings
    assert [each.ends for each in findings] == ([ends] if ends else [])
    assert all(each.fault.word == "port-setting" and "1522 bytes, 9236 at most" in each.message for each in findings)


def test_packets_of_other_partitions_blame_no_cable() -> None:
    fabric = Fabric("rails", 20)
    guid = fabric.guids()["dgx005 mlx5_4"]
    counts = f'Errors for "dgx005 mlx5_4"\n   GUID {guid:#x} port 1: [PortRcvConstraintErrors == {{}}]\n'
    for count, words in ((9120, ["fabric-errors"]), (60, [])):
        found = judge(fabric_of([read(fabric.discovered()), read(counts.format(count))])).findings
        assert [(each.fault.word, each.plugs) for each in found] == [(word, ()) for word in words]
        assert all("partitions.conf" in each.action for each in found)


def test_slurm_s_tree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fabric = Fabric("fat", 40)
    another_leaf(fabric, random.Random(1))
    (tmp_path / "ib.txt").write_text(fabric.discovered())
    main(["fabric", "--format", "slurm", str(tmp_path / "ib.txt")])
    lines = capsys.readouterr().out.splitlines()
    assert "SwitchName=leaf003 Nodes=dgx[012-015]" in lines
    assert lines[-1] == "SwitchName=core Switches=leaf[000-009]"
    assert len(lines) == 12
    main(["fabric", "--format", "slurm-yaml", str(tmp_path / "ib.txt")])
    assert "      - switch: leaf003\n        nodes: dgx[012-015]\n" in capsys.readouterr().out
    (conf := tmp_path / "topology.conf").write_text("as it was\n")
    (tmp_path / "cut.txt").write_text(fabric.discovered()[:-30])
    (tmp_path / "none.txt").write_text("")
    for name in ("cut.txt", "none.txt"):
        assert main(["fabric", "--format", "slurm", "-o", str(conf), str(tmp_path / name)]) == 3
        assert f"no topology, as systems would be left out: {tmp_path}/{name}: " in capsys.readouterr().err
    assert conf.read_text() == "as it was\n"


@pytest.mark.exhaustive
@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_systems_in_three_seconds(kind: Kind) -> None:
    text = Fabric(kind, 1000).discovered()
    begun = time.process_time()
    found = judge(fabric_of([read(text)]))
    assert time.process_time() - begun < 3
    assert found.findings == ()


def test_a_topology_file_of_all_cables() -> None:
    """Links between switches stand in it from both ends; the switches' full descriptions are longer than its names."""
    fabric = Fabric("fat", 12)
    rows: dict[str, list[str]] = {}
    for (node, port), (switch, far) in fabric.planned.items():
        host, _, name = node.partition(" ")
        if name:
            rows.setdefault(switch, []).append(f"   P{far} -4x-25G-> HCA_mlx5_3 {host} {name}/P1")
        else:
            rows.setdefault(node, []).append(f"   P{port} -4x-25G-> MQM9700 {switch} P{far}")
            rows.setdefault(switch, []).append(f"   P{far} -4x-25G-> MQM9700 {node} P{port}")
    lines = (line for switch, cables in rows.items() for line in (f"MQM8700 {switch}", *cables))
    plan = planned("\n".join(lines), "topo")
    fabric.swap(("leaf001", 20), ("leaf001", 21))
    text = re.sub(r"'((?:leaf|spine)\d+)'", r"'MF0;\1:MQM9700/U1'", fabric.discovered())
    (finding,) = judge(fabric_of([read(text)]), plan).findings
    assert finding.message == "leaf001 ports 20 and 21 have each other's cable"
    assert finding.action == "exchange the two plugs at leaf001 ports 20 and 21"
