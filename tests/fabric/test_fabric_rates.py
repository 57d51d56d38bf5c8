"""Links below the rate of their kind: one by one, and what slows many of them as one finding."""

from __future__ import annotations

import pytest
from fabrics import Fabric, Kind, judged


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
