"""Leaves, uplinks and cables that are not there, of one switch or of many systems, with a plan or without."""

from __future__ import annotations

import re

import pytest
from fabrics import Fabric, judged

from dgxcheck.fabric.cabling import _Lost, _missing
from dgxcheck.fabric.judge import judge
from dgxcheck.fabric.model import ANY, fabric_of
from dgxcheck.readers.fabric.any_fabric import read
from dgxcheck.readers.fabric.plan import planned


def test_a_leaf_without_many_uplinks_is_one_finding_and_one_without_any_an_island() -> None:
    fabric = Fabric("fat", 124)
    for port in range(17, 22):
        del fabric.up["leaf007", port]
    (finding,) = judged(fabric).findings
    assert (finding.fault.word, finding.ends) == ("uplinks-uneven", ("leaf007",))
    assert finding.message.startswith("leaf007 has 11 uplinks, 16 would be as at the others")
    for port in range(22, 28):
        del fabric.up["leaf007", port]
    (finding,) = judged(fabric).findings
    assert finding.message.startswith("leaf007 has 5 uplinks, 16 would be as at the others")
    for port in range(28, 33):
        del fabric.up["leaf007", port]
    (finding,) = judged(fabric).findings
    assert finding.fault.word == "subnet-split"
    assert "leaf007 with mlx5_0 of dgx028, dgx029, dgx030, dgx031" in finding.message


def test_a_leaf_with_few_uplinks_beside_some_with_more_and_many_with_all() -> None:
    """Each of the many lacks another one; the few are like the some, and these like the many."""
    fabric = Fabric("fat", 84)
    for leaf in range(21):
        for spine in {leaf} if leaf < 16 else range(4 if leaf < 20 else 1, 16):
            del fabric.up[f"leaf{leaf:03}", 17 + spine]
    messages = [finding.message for finding in judged(fabric).findings]
    assert "leaf020 has 1 uplink, 16 would be as at the others" in "".join(messages)


def test_a_leaf_that_is_gone_is_one_finding() -> None:
    fabric = Fabric("rails", 64)
    for end, far in [*fabric.up.items()]:
        if "leaf001r3" in (end[0], far[0]):
            del fabric.up[end]
    (finding,) = judged(fabric).findings
    assert finding.message == (
        "mlx5_3 of dgx016, dgx017, dgx018, dgx019 and 12 more is not in the fabric, as it is of 48 other systems"
    )


@pytest.mark.parametrize(("lost", "message", "action"), [
    ([f"dgx{host:03} mlx5_5" for host in range(24, 32)], "leaf001r5: 8 cables without a link: mlx5_5 of dgx[024-031];"
     " they belong to leaf001r5 ports 9-16", "look at leaf001r5 for the state of these ports"),
    ([f"dgx007 mlx5_{rail}" for rail in range(4)], "dgx007: 4 cables without a link: mlx5_0, mlx5_1, mlx5_2, mlx5_3;"
     " they belong to leaf000r0 port 8, leaf000r1 port 8, leaf000r2 port 8, leaf000r3 port 8", "look at dgx007 for"),
])  # fmt: skip
def test_many_cables_of_one_switch_or_system_are_one_finding(lost: list[str], message: str, action: str) -> None:
    fabric = Fabric("rails", 48)
    plan = planned(fabric.plan(), "plan")
    fabric.up = {end: far for end, far in fabric.up.items() if end[0] not in lost}
    for cables in (None, plan):
        (finding,) = judged(fabric, cables).findings
        assert (finding.message, finding.action[: len(action)]) == (message, action)


def test_a_switch_with_one_unknown_place_names_no_ports() -> None:
    fabric = Fabric("rails", 16)
    leaf = f"{fabric.guids()['leaf000r5']:016x}"
    lost = [_Lost(f"dgx00{number}", "mlx5_5", (leaf, number), True) for number in (ANY, 1, 2, 3)]
    (finding,) = _missing(lost, fabric_of([read(fabric.discovered())]))
    assert finding.message.endswith("mlx5_5 of dgx[000-003]; they belong to leaf000r5")


@pytest.mark.parametrize(("systems", "gone", "words"), [
    (32, ("leaf001r3",), "mlx5_3 of dgx016, dgx017, dgx018, dgx019 and 12 more is not in the fabric, as it is of 16"),
    (48, ("leaf000r3", "leaf001r3"), "mlx5_3 of dgx000, dgx001, dgx002, dgx003 and 28 more is not in the fabric, as"),
    (32, ("leaf000r7",), "mlx5_7 of dgx000, dgx001, dgx002, dgx003 and 12 more is not in the fabric, as it is of 16"),
])  # fmt: skip
def test_a_leaf_of_half_of_the_systems_or_more_is_gone(systems: int, gone: tuple[str, ...], words: str) -> None:
    """Those who share the other leaves lack what was on it, and no other adapter."""
    fabric = Fabric("rails", systems)
    for end, far in [*fabric.up.items()]:
        if end[0] in gone or far[0] in gone:
            del fabric.up[end]
    found = judged(fabric)
    assert [finding.message[: len(words)] for finding in found.findings] == [words]
    assert [len(scheme.blocks) for scheme in found.intent.schemes] == [8]


def test_systems_with_more_or_other_adapters_lack_no_leaf() -> None:
    """Storage adapters of one row of three; a row of machines with four adapters; half that call one otherwise."""
    for systems, rails in ((48, (7,)), (48, (4, 5, 6, 7))):
        fabric = Fabric("rails", systems)
        for host in range(16, systems):
            for rail in rails:
                del fabric.up[f"dgx{host:03} mlx5_{rail}", 1]
        assert judged(fabric).findings == ()
    text = re.sub(r"(dgx0(?:0\d|1[0-5])) mlx5_7", r"\1 mlx5_9", Fabric("rails", 32).discovered())
    assert judge(fabric_of([read(text)])).findings == ()
