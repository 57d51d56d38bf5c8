"""Nodes by rack: as the site says, else as the names tell; every node once."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from many import result

from dgxcheck.configuration import settings
from dgxcheck.facts.missing import BadInput
from dgxcheck.fleet.judge import judge
from dgxcheck.fleet.node_names import folded, racks_of
from dgxcheck.output.fleet import text
from dgxcheck.output.report import FleetReport
from dgxcheck.settings import Settings

NAMES: list[tuple[list[str], dict[str, int]]] = [
    ([f"dgx{n}" for n in range(1, 12)], {"dgx[1-11]": 11}),
    ([f"r{rack:02}n{n}" for rack in (1, 2) for n in range(4)], {"r01n[0-3]": 4, "r02n[0-3]": 4}),
    (["dgx1.a.org", "dgx2.a.org", "login1.a.org"], {"dgx[1-2].a.org": 2, "login1.a.org": 1}),
    ([f"x1000c{c}s{s}b0n0" for c in (0, 1) for s in (0, 1, 2)],
     {"x1000c0s0b0n0,x1000c0s1b0n0,x1000c0s2b0n0": 3, "x1000c1s0b0n0,x1000c1s1b0n0,x1000c1s2b0n0": 3}),
    (["alpha", "beta"], {"alpha,beta": 2}),
    (["7", "8"], {"[7-8]": 2}),
    ([], {}),
]  # fmt: skip


@pytest.mark.parametrize(("names", "racks"), NAMES)
def test_racks_by_name(names: list[str], racks: dict[str, int]) -> None:
    assert {rack: len(nodes) for rack, nodes in racks_of(names, Settings()).items()} == racks


def test_nodes_are_in_the_order_of_counting() -> None:
    assert racks_of(["n10", "n9", "n1"], Settings()) == {"n[1,9-10]": ("n1", "n9", "n10")}


def test_racks_of_the_site() -> None:
    names = ["n0101", "n0102", "n0201", "login"]
    by_pattern = racks_of(names, Settings(rack_pattern=r"^n(\d\d)"))
    assert by_pattern == {"01": ("n0101", "n0102"), "02": ("n0201",), "other nodes": ("login",)}
    both = racks_of(names, Settings(rack_pattern=r"^n(\d\d)", racks={"front": "login,n0201", "empty": "x[1-9]"}))
    assert both == {"front": ("login", "n0201"), "01": ("n0101", "n0102")}


def test_a_group_of_clustershell_is_unfolded_by_it() -> None:
    pytest.importorskip("ClusterShell")
    with pytest.raises(BadInput, match="@nothing"):
        racks_of(["n1"], Settings(racks={"A": "@nothing-of-this-name"}))


@given(st.lists(st.text(max_size=12)))
def test_every_node_stands_in_one_rack(names: list[str]) -> None:
    placed = [node for nodes in racks_of(names, Settings()).values() for node in nodes]
    assert sorted(placed) == sorted(set(names))


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"racks": "A"}, "fleet.racks"), ({"racks": {"A": 1}}, "fleet.racks.A"), ({"racks": {"A": " "}}, "fleet.racks.A"),
    ({"rack_pattern": "n"}, "fleet.rack_pattern"), ({"rack_pattern": "(a)(b)"}, "fleet.rack_pattern"),
    ({"rack_pattern": "("}, "fleet.rack_pattern"), ({"rack_pattern": 1}, "fleet.rack_pattern"),
    ({"rack": "n"}, "fleet.rack"),
]  # fmt: skip


@pytest.mark.parametrize(("table", "key"), WRONG)
def test_what_is_no_rack_is_refused(table: dict[str, Any], key: str) -> None:
    with pytest.raises(BadInput, match=key):
        settings({"fleet": table}, "site.toml", ())


@pytest.mark.parametrize(("sick", "words"), [
    (range(8), "all nodes with NVLink domain rack0.1 have it, and no other alike: look at this first"),
    ([0, 1, 2, 4, 5, 6, 7], "only nodes with NVLink domain rack0.1 have it, 7 of 8: look at this first"),
    ([*range(7), 9], "so many nodes have one reason: "),  # one is in another domain
])  # fmt: skip
def test_a_fault_of_just_one_domain_names_it_and_equal_scores_are_one_row(
    sick: Collection[int], words: str, tmp_path: Path
) -> None:
    rows = [result("dgx-1-v100-bar1-small" if number in sick else "dgx-1-v100", host=f"t{number:02}",
                   nvlink_domains=[f"rack{number // 8}.1"]) for number in range(32)]  # fmt: skip
    (tmp_path / "all.jsonl").write_text("\n".join(map(json.dumps, rows)))
    fleet = judge([str(tmp_path)], max_age_s=1e9)
    (kind,) = fleet.kinds
    assert text.common(kind).startswith(words)
    lowest = text.render(FleetReport(fleet, 0, False, {})).partition("Lowest scores:\n")[2].splitlines()
    assert lowest[0].startswith(f"  {folded(f't{number:02}' for number in sick)}: ")
