"""Few systems: where either of two that differ can be right nothing is moved, unless other units decide."""

from __future__ import annotations

import pytest
from fabrics import Fabric, judged

from dgxcheck.fabric.model import ANY, Cable, fabric_of
from dgxcheck.fabric.moves import Move, exchanges
from dgxcheck.facts.record import replace
from dgxcheck.readers.fabric.plan import planned


@pytest.mark.parametrize(("systems", "wrong", "ways"), [
    (2, (1,), "dgx000 and dgx001"), (4, (0, 2), "dgx[000,002] and dgx[001,003]"),
    (18, (17,), "dgx016 and dgx017"),
])  # fmt: skip
def test_of_two_systems_that_differ_either_can_be_right(systems: int, wrong: tuple[int, ...], ways: str) -> None:
    """Nor does the half of them decide; three of which two agree do."""
    fabric = Fabric("rails", systems)
    for host in wrong:
        fabric.swap((f"dgx{host:03} mlx5_1", 1), (f"dgx{host:03} mlx5_2", 1))
    (finding,) = judged(fabric).findings
    assert (finding.fault.word, finding.moves) == ("cable-swapped", ())
    assert finding.message == f"{ways} cable mlx5_1/mlx5_2 differently, and no way is that of most systems"
    assert "--plan" in finding.action
    (finding, *others) = judged(fabric, planned(fabric.plan(), "plan")).findings
    assert len(finding.moves) == 2
    assert len(others) == len(wrong) - 1
    fabric = Fabric("rails", 3)
    fabric.swap(("dgx001 mlx5_1", 1), ("dgx001 mlx5_2", 1))
    (finding,) = judged(fabric).findings
    assert finding.ends[:2] == ("dgx001 mlx5_1", "dgx001 mlx5_2")
    assert len(finding.moves) == 2


@pytest.mark.parametrize("turned", [8, 16])
def test_half_of_a_unit_with_its_adapters_in_another_order_is_one_finding(turned: int) -> None:
    """As after a change of firmware, or of cards; all of a unit are a way of their own."""
    fabric = Fabric("rails", 48)
    for host in range(16, 16 + turned):
        for rail in range(4):
            fabric.swap((f"dgx{host:03} mlx5_{rail}", 1), (f"dgx{host:03} mlx5_{rail + 4}", 1))
    messages = [finding.message for finding in judged(fabric).findings]
    assert messages == ["dgx[016-023] and dgx[024-031] cable mlx5_0/mlx5_1/mlx5_2/mlx5_3/mlx5_4/mlx5_5/mlx5_6/mlx5_7"
                        " differently, and no way is that of most systems"] * (turned < 16)  # fmt: skip


def test_two_systems_of_a_unit_of_their_own_are_enough_where_the_others_decide() -> None:
    """A missing cable belongs where the other has it; of two places one is that of another unit."""
    fabric = Fabric("rails", 18)
    del fabric.up["dgx016 mlx5_3", 1]
    (finding,) = judged(fabric).findings
    assert finding.ends == ("dgx016 mlx5_3", "leaf001r3 port 1")
    fabric = Fabric("rails", 18)
    fabric.swap(("dgx016 mlx5_1", 1), ("dgx004 mlx5_1", 1))
    (finding,) = judged(fabric).findings
    assert finding.action == "exchange the two plugs at leaf001r1 port 1 and leaf000r1 port 5"


def test_two_systems_that_differ_in_what_they_have_or_where_are_one_finding() -> None:
    """And they have no scheme; three of which two agree do."""
    fabric = Fabric("rails", 2)
    del fabric.up["dgx001 mlx5_3", 1]
    found = judged(fabric)
    (finding,) = found.findings
    assert (finding.fault.word, finding.status, finding.ends) == ("cable-missing", "warn", ("dgx001 mlx5_3",))
    assert finding.message == "mlx5_3 of dgx001 is not in the fabric, as it is of dgx000"
    assert not any(scheme.blocks for scheme in found.intent.schemes)
    fabric = Fabric("rails", 2)
    fabric.up["dgx001 mlx5_1", 1] = "leaf000r5", 40
    (finding,) = judged(fabric).findings
    assert finding.message == "dgx000 and dgx001 cable mlx5_1 differently, and no way is that of most systems"
    for systems in (2, 18):
        fabric = Fabric("rails", systems)
        first, second = fabric.hosts[-2:]
        fabric.swap((f"{first} mlx5_1", 1), (f"{second} mlx5_2", 1))
        (finding,) = judged(fabric).findings
        assert finding.message.startswith(f"{first} and {second} cable mlx5_1/mlx5_2 differently")
    fabric = Fabric("rails", 3)
    del fabric.up["dgx001 mlx5_3", 1]
    assert [finding.status for finding in judged(fabric).findings] == ["fail"]


def test_of_two_ways_that_of_other_units_is_right() -> None:
    fabric = Fabric("rails", 18)
    fabric.up["dgx017 mlx5_1", 1] = "leaf001r5", 40
    (finding,) = judged(fabric).findings
    assert (finding.fault.word, finding.ends[0]) == ("cable-misplaced", "dgx017 mlx5_1")
    assert finding.action == "move its plug from leaf001r5 port 40 to a free port of leaf001r1"


def test_an_uplink_in_the_place_of_an_adapter_is_not_where_it_is() -> None:
    fabric = Fabric("rails", 2)
    fabric.swap(("dgx001 mlx5_7", 1), ("leaf000r6", 20))
    (finding,) = (each for each in judged(fabric).findings if each.fault.word == "cable-misplaced")
    assert finding.action == "move its plug from leaf000r7 port 2 to spine03 port 7"


@pytest.mark.parametrize(("lost", "systems", "found"), [
    (1, 8, ["leaf000: 3 uplinks; 4 at leaf001 with as many adapters"]), (0, 8, []), (1, 7, []),
])  # fmt: skip
def test_of_two_leaves_one_with_fewer_uplinks(lost: int, systems: int, found: list[str]) -> None:
    """Below one spine; with fewer adapters it may be meant so."""
    fabric = Fabric("fat", systems)
    fabric.up = {end: far for end, far in fabric.up.items() if end[0][:3] == "dgx"}
    fabric.up |= {(f"leaf00{leaf}", 17 + at): ("spine00", 4 * leaf + at + 1) for leaf in (0, 1) for at in range(4)}
    for link in range(lost):
        del fabric.up["leaf000", 18 + link]
    findings = judged(fabric).findings
    assert [finding.message for finding in findings] == found
    assert {finding.status for finding in findings} <= {"warn"}


@pytest.mark.parametrize(("homes", "groups"), [
    ((("s2", ANY), ("s1", ANY), ("s3", 3)), [["a", "b"]]),  # two on each other's switch
    ((("s2", ANY), ("s3", ANY), ("s1", ANY)), [["a"], ["b"], ["c"]]),  # a ring, but at which ports?
    ((("s2", 2), ("s3", 3), ("s1", 1)), [["a", "b", "c"]]),
    ((("s2", 2), ("s3", 3), ("s1", ANY)), [["a", "b", "c"]]),  # the last port is that which the first one leaves
    ((("s2", 2), ("s1", ANY), ("s3", 3)), [["a", "b"]]),
    ((("s2", ANY), ("s1", 1), ("s3", 3)), [["a", "b"]]),
    ((("s2", 2), ("s3", 4), ("s1", 1)), [["a"], ["b"], ["c"]]),
    ((("s1", ANY), ("s2", ANY), ("s3", 3)), []),
])  # fmt: skip
def test_plugs_in_each_others_places(homes: tuple[tuple[str, int], ...], groups: list[list[str]]) -> None:
    places = {("a", 1): ("s1", 1), ("b", 1): ("s2", 2), ("c", 1): ("s3", 3)}
    fabric = replace(fabric_of(()), at={of: Cable(of, place, 4, "EDR") for of, place in places.items()})
    found = exchanges(fabric, dict(zip(places, homes, strict=True)))
    assert [[move.of[0] for move in moves] for moves in found] == groups
    if groups == [["a", "b"]]:
        assert found[0][0] == Move(("a", 1), ("s1", 1), ("s2", 2))
