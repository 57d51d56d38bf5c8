"""Machines that share a name, and names that share a machine: told apart by serial numbers and the ID of a boot."""

from __future__ import annotations

from pathlib import Path
from time import time
from typing import Any

import pytest
from many import Document, result
from test_results import FRESH, KEY, LIVE, NOW, SICK, at, dated, written

from dgxcheck.cli import main
from dgxcheck.fleet.judge import judge
from dgxcheck.output.fleet.schedulers import may_return, reason_of

OTHER_MACHINE: Document = {"parts": [{"kind": "machine", "serial": "MADEUP", "at": ""}], "boot_id": "another"}
UNNUMBERED: Document = {"parts": [], "boot_id": None}


@pytest.mark.parametrize(("hours", "shared"), [((1, 1), True), ((1, 3), False), ((1, 3, 5), True)])
def test_two_machines_that_share_a_name_are_no_exchange(hours: tuple[int, ...], shared: bool, tmp_path: Path) -> None:
    results = [at(hour, **OTHER_MACHINE) if turn % 2 else at(hour) for turn, hour in enumerate(hours)]
    fleet = judge([written(tmp_path, *results)], now_s=NOW)
    assert ["results of 2 machines" in each.why for each in fleet.unread] == [True] * shared
    assert fleet.nodes["dgx001"].verdict == ("unknown" if shared else "pass")
    assert may_return(fleet) is not shared


@pytest.mark.parametrize(("results", "verdict"), [
    ([at(3, SICK), at(3.5, **OTHER_MACHINE)], "fail"),
    ([at(3, SICK), at(3.5, **OTHER_MACHINE), at(8, **OTHER_MACHINE)], "fail"),
    ([at(3, SICK), at(3.5, **OTHER_MACHINE), at(4)], "unknown"),
    ([at(3, SICK), at(3.5, **OTHER_MACHINE), at(4, **UNNUMBERED)], "fail"),
    ([at(3), at(3.5, SICK, **OTHER_MACHINE), at(4)], "fail"),
    ([at(1, SICK, **UNNUMBERED), at(3), at(3.5, **OTHER_MACHINE)], "fail"),
    ([at(-40, SICK, parts=[{"kind": "machine", "serial": "SOLD", "at": ""}]), at(3), at(3.5, **OTHER_MACHINE)],
     "unknown"),
    ([at(-40, **OTHER_MACHINE), at(-39.5, SICK), at(3, **OTHER_MACHINE)], "pass"),
    ([at(1, SICK), at(3, **OTHER_MACHINE)], "pass"),
    ([at(1, gpus={"A": 8}), at(1.5, gpus={"A": 4}, **OTHER_MACHINE)], "unknown"),
])  # fmt: skip
def test_a_fault_of_one_machine_is_not_proven_right_by_another_of_its_name(
    results: list[Document], verdict: str, tmp_path: Path
) -> None:
    fleet = judge([written(tmp_path, *results)], now_s=NOW)
    assert fleet.nodes["dgx001"].verdict == verdict
    word = reason_of(fleet.nodes["dgx001"]).removeprefix("dgxcheck: ").split("; ")[0]
    assert (word == verdict) is (verdict != "fail")


def test_the_gate_names_the_machines_that_share_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dates = [dated(time() - 60 * minutes) for minutes in (30, 10)]
    sick, well = ({"host": "dgx001", "source": LIVE, "generated_at": date} for date in dates)
    folder = written(tmp_path, result(SICK, **sick), result("dgx-1-v100", **{**OTHER_MACHINE, **well}))
    assert main(["fleet", "--gate", "-n", "dgx001", folder]) == 2
    held = capsys.readouterr().out
    assert held.startswith("dgx001: hold: results of 2 machines, serial numbers ")
    assert f"{KEY} found by level default at {dates[0]} on " in held
    assert main(["fleet", "--history", folder]) == 2


def unprivileged(host: str, **members: Any) -> Document:
    """Parts of another machine, whose own serial number only root reads."""
    other = result("dgx-1-v100", host=host)
    parts = [part for part in other["parts"] if part["kind"] != "machine"]
    return {"parts": parts, "boot_id": other["boot_id"], **members}


@pytest.mark.parametrize(("first", "then", "machines"), [
    (unprivileged("a"), unprivileged("b"), 2),
    (unprivileged("a"), unprivileged("a", boot_id="next"), 0),
    (unprivileged("a"), {}, 2),
    (unprivileged("dgx001"), {}, 0),
    (unprivileged("a"), unprivileged("b", boot_id="boot of a"), 0),
    (unprivileged("a", parts=unprivileged("a")["parts"][:1]), unprivileged("b", parts=unprivileged("b")["parts"][:1]),
     0),
])  # fmt: skip
def test_without_the_number_of_the_machine_its_parts_tell_it_apart(
    first: Document, then: Document, machines: int, tmp_path: Path
) -> None:
    fleet = judge([written(tmp_path, at(11.5, SICK, **first), at(11.7, **then))], now_s=NOW)
    assert len(fleet.nodes["dgx001"].machines) == machines
    assert may_return(fleet) is (machines == 0)


TWICE = result("dgx-1-v100", host="dgx001")
SAME: list[tuple[Document, Document, set[str]]] = [
    ({}, {}, set()),
    ({}, {"boot_id": TWICE["boot_id"]}, {"dgx001", "dgx002"}),
    ({}, {"parts": TWICE["parts"]}, {"dgx001", "dgx002"}),
    ({"generated_at": dated(NOW - 7200)}, {"parts": TWICE["parts"]}, {"dgx001"}),
    ({}, {"parts": [each for each in TWICE["parts"] if each["kind"] == "machine"]}, set()),
    ({}, {"parts": TWICE["parts"], "source": {"kind": "recording"}}, set()),
]


@pytest.mark.parametrize(("first", "then", "doubtful"), SAME)
def test_one_machine_does_not_stand_for_two_nodes(
    first: Document, then: Document, doubtful: set[str], tmp_path: Path
) -> None:
    fleet = judge([written(tmp_path, at(11.9, **first), at(11.9, host="dgx002", **then))], now_s=NOW)
    assert {name for name, node in fleet.nodes.items() if node.same_as} == doubtful
    assert {name for name, node in fleet.nodes.items() if node.verdict == "unknown"} == doubtful
    assert {each.where for each in fleet.unread} == doubtful


def test_a_gate_is_not_held_by_doubts_of_nodes_that_were_not_asked_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    documents = [result("dgx-1-v100", host=f"dgx00{number}", **FRESH) for number in (1, 2, 3)]
    folder = written(tmp_path, *documents[:2], {**documents[2], "boot_id": documents[1]["boot_id"]})
    assert main(["fleet", "--gate", "-n", "dgx001", folder]) == 0
    assert main(["fleet", "--gate", "-n", "dgx002", folder]) == 2
    assert "dgx002: hold: the same machine as dgx003" in capsys.readouterr().out
