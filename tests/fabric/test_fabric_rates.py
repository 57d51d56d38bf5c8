"""Links below the rate of their kind: one by one, and what slows many of them as one finding."""

from __future__ import annotations

import pytest
from fabrics import Fabric, Kind, judged

from dgxcheck.fabric.boxes import boxes_of, joined
from dgxcheck.fabric.model import fabric_of
from dgxcheck.fabric.rates import ports_of
from dgxcheck.facts.faults import Fault
from dgxcheck.output.fabric.text import rates
from dgxcheck.readers.fabric.any_fabric import FabricText
from dgxcheck.readers.fabric.rows import End, PortRow


@pytest.mark.parametrize(("kind", "slow", "words"), [
    ("rails", "leaf000r2", "leaf000r2: 16 links to other switches at 4x HDR, 4x NDR at most others"),
    ("fat", "leaf001", "leaf001: 16 links to other switches at 4x HDR, 4x NDR at most others"),
    ("rails", "dgx007 mlx5_", "dgx007: 8 links at 4x HDR, 4x NDR at most others"),
    ("fat", "dgx007 mlx5_", "dgx007: 4 links at 4x HDR, 4x NDR at most others"),
    ("fat", "dgx007 mlx5_3", "dgx007 mlx5_3 - leaf001 port 16: 4x HDR, 4x NDR at most others"),
])  # fmt: skip
def test_links_that_one_switch_or_system_slows_are_one_finding(kind: Kind, slow: str, words: str) -> None:
    fabric = Fabric(kind, 32, "4xNDR")
    fabric.rates = {end: "4xHDR" for end in fabric.up if end[0].startswith(slow)}
    assert [finding.message for finding in judged(fabric).findings] == [words]


@pytest.mark.parametrize(("ends", "words"), [
    (("leaf000r3", ""), "leaf000r3: 16 links to adapters at 4x HDR, 4x NDR at most other adapters of these systems"),
    (("leaf000r3", "leaf000r3"), "leaf000r3: 16 links to adapters and 16 links to other switches at 4x HDR, 4x NDR at"
     " most other adapters of these systems"),
    (("spine02", ""), "spine02: 16 links to other switches at 4x HDR, 4x NDR at most others"),
])  # fmt: skip
def test_a_switch_of_half_the_rate_is_one_finding(ends: tuple[str, str], words: str) -> None:
    """Where half of the systems hang on it, and where all of its links are alike; a rail that is slower by design is
    none."""
    fabric = Fabric("rails", 32, "4xNDR")
    fabric.rates = {end: "4xHDR" for end, far in fabric.up.items() if far[0] == ends[0] or end[0] == ends[1]}
    assert [finding.message for finding in judged(fabric).findings] == [words]
    fabric.rates = {end: "4xHDR" for end in fabric.up if end[0].endswith("mlx5_3")}
    assert judged(fabric).findings == ()


@pytest.mark.parametrize(("systems", "ports"), [(32, range(1, 9)), (32, range(3, 7)), (16, range(1, 9))])
def test_many_slow_links_of_one_switch_are_one_finding_with_their_ports(systems: int, ports: range) -> None:
    fabric = Fabric("rails", systems, "4xNDR")
    fabric.rates = {end: "4xHDR" for end, far in fabric.up.items() if far[0] == "leaf000r3" and far[1] in ports}
    (finding,) = judged(fabric).findings
    at = f"(ports {ports[0]}-{ports[-1]})"
    assert finding.message.startswith(f"leaf000r3: {len(ports)} of 16 links to adapters {at} at 4x HDR, 4x NDR at most")
    assert finding.action.endswith("before any cable is moved")
    fabric.rates["dgx003 mlx5_6", 1] = "4xHDR"
    assert [finding.ends[0] for finding in judged(fabric).findings] == ["leaf000r3", "dgx003 mlx5_6"]
    fabric.rates = {(f"dgx{host:03} mlx5_{rail}", 1): "4xHDR"
                    for rail in range(8) for host in range(rail % 4, systems, 4)}  # fmt: skip
    assert len(judged(fabric).findings) == 2 * systems


def test_ports_are_named_as_their_switch_names_them() -> None:
    """Those without a link as at switches whose labels begin alike, else by number; two of one switch may differ."""
    labels = {("leaf0", 1): "swp1", ("leaf0", 2): "swp2", ("leaf1", 1): "swp1", ("leaf2", 1): "swp1",
              ("leaf2", 5): "swp5s1", ("leaf3", 5): "Eth5/2", ("leaf4", 5): "swp5"}  # fmt: skip
    rows = [PortRow(End("switch", *port, port[0], None, label), None, 0, "") for port, label in labels.items()]
    fabric = fabric_of([FabricText(tuple(rows), {})])
    shown = [fabric.shown(port) for port in (("leaf1", 2), ("leaf3", 1), ("leaf1", 5), ("leaf2", 5), ("leaf9", 1))]
    assert shown == ["leaf1 swp2", "leaf3 port 1", "leaf1 port 5", "leaf2 swp5s1", "leaf9 port 1"]
    assert ports_of([("leaf1", number) for number in (1, 7, 8, 9)], fabric) == "ports swp1, 7, 8, 9"


def test_switches_of_another_generation_are_not_slow() -> None:
    """A leaf of storage servers, half of the units with their leaves, and a switch with few links."""
    fabric = Fabric("rails", 32, "4xNDR")
    for end, far in [*fabric.up.items()]:
        if {end[0][:7], far[0][:7]} & {"leaf001"}:
            fabric.rates[end] = "4xHDR"
    assert judged(fabric).findings == ()
    fabric = Fabric("rails", 48, "4xNDR")
    for number in range(16):
        fabric.up[f"stor{number:02} mlx5_0", 1] = "storage0", number + 1
        fabric.up["storage0", 17 + number] = f"spine{number:02}", 60
    for end, far in [*fabric.up.items()]:
        if "storage0" in (end[0], far[0]):
            fabric.rates[end] = "4xHDR"
    for unit in range(3):
        fabric.up[f"leaf00{unit}r0", 60] = "gateway", unit + 1
        fabric.rates[f"leaf00{unit}r0", 60] = "4xHDR"
    fabric.planned = dict(fabric.up)
    assert [finding for finding in judged(fabric).findings if finding.fault.word == "port-slow"] == []


def test_two_ports_of_one_cage_are_one_finding_and_one_interrupts_the_other() -> None:
    """On a Quantum-2 switch; the cage of two links that were split, and of older switches, is not known."""
    fabric = Fabric("rails", 32, "4xNDR")
    fabric.rates["dgx004 mlx5_2", 1] = "4xHDR"
    (finding,) = judged(fabric).findings
    assert (finding.action, finding.disturbs) == (Fault.PORT_SLOW.remedy, ("dgx004 mlx5_2", "dgx005 mlx5_2"))
    fabric.rates["dgx005 mlx5_2", 1] = "4xHDR"
    (finding,) = judged(fabric).findings
    assert finding.message.startswith("leaf000r2 ports 5 and 6, one cage: dgx004 mlx5_2 - leaf000r2 port 5: 4x HDR")
    assert finding.action.startswith("look first at what they share, the plug or transceiver at leaf000r2 ports 5 and")
    fabric.rates["dgx001 mlx5_2", 1] = "2xNDR"
    assert len([each for each in judged(fabric).findings if "4x HDR" in each.message]) == 2
    fabric = Fabric("rails", 32, "4xNDR")
    del fabric.up["dgx004 mlx5_2", 1], fabric.up["dgx005 mlx5_2", 1]
    (finding,) = judged(fabric).findings
    assert finding.fault.word == "cable-missing"
    fabric = Fabric("rails", 32, "4xHDR")
    del fabric.up["dgx004 mlx5_2", 1], fabric.up["dgx006 mlx5_2", 1]
    assert [each.disturbs for each in judged(fabric).findings] == [(), ()]


def test_moved_plugs_interrupt_their_links() -> None:
    fabric = Fabric("rails", 20)
    fabric.swap(("dgx001 mlx5_1", 1), ("dgx001 mlx5_2", 1))
    (finding,) = judged(fabric).findings
    assert finding.disturbs == ("dgx001 mlx5_1", "dgx001 mlx5_2")


def test_links_all_of_which_are_slow_are_shown_and_compared_with_a_recorded_machine() -> None:
    fabric = Fabric("rails", 32, "4xNDR")
    for end in fabric.up:
        if end[0].endswith("mlx5_5"):
            fabric.rates[end] = "4xHDR"
    found = judged(fabric)
    assert found.verdict == "pass"
    assert [*rates(found.fabric)] == [
        "rates: adapters 224 at 4x NDR, 32 at 4x HDR (mlx5_5); between switches 256 at 4x NDR"]
    (finding,) = joined(found, boxes_of(["dgx-h100"])).findings
    assert finding.message == "mlx5_5 of dgx[000-031]: 32 links at 4x HDR, 400 Gbit/s in the recordings (--boxes)"
    assert joined(judged(Fabric("rails", 32, "4xNDR")), boxes_of(["dgx-h100"])).findings == ()
