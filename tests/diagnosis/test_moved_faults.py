"""A cause is found by walking the topology: a fault that moves to any other place of its box takes its cause along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from blamed import blamed, due
from judging import judged
from layers import disagreements
from moved_faults import KINDS, STAYS, moves, overlay
from moving import Move
from sample import FAULTS, FOUND_BY, swept
from test_fault_layers import loaded
from together import holds_for_each
from wired import wired

from dgxcheck.source.recording.overlay import applied

MOVED = [fault for faults, _ in KINDS for fault in faults]


def test_each_fault_moves_or_has_a_reason_to_stay() -> None:
    found = sorted(fault for fault in FAULTS if overlay(fault)["expect"]["findings"])
    assert sorted([*STAYS, *(fault for faults, _ in KINDS for fault in faults)]) == found


@pytest.mark.parametrize("fault", swept(MOVED, 6))
def test_a_fault_that_moves_nowhere_is_the_same(fault: str) -> None:
    here = overlay(fault)
    there = Move(wired(here["base"]), {}).overlay(here)
    one, other = (applied(each, fault, loaded) for each in (here, there))
    assert (one.lines, one.later) == (other.lines, other.later)


def takes_its_cause_along(fault: str, move: Move, path: Path) -> None:
    here = overlay(fault)
    there = move.overlay(here)
    assert bool(disagreements(applied(there, fault, loaded).lines)) == ("disagrees" in here["expect"])
    path.write_text(json.dumps(there), encoding="utf-8")
    document = judged(str(path))[1]
    assert blamed(document) == [due(fault, move)]
    assert document["unexplained"] == []


@pytest.mark.parametrize("fault", swept([fault for fault in dict.fromkeys(FOUND_BY.values()) if fault in MOVED], 6))
def test_a_fault_takes_its_cause_along(fault: str, tmp_path: Path) -> None:
    """To the last of its other places, for each check."""
    takes_its_cause_along(fault, [*moves(fault)][-1][1], tmp_path / "moved.json")


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", MOVED)
def test_a_fault_takes_its_cause_anywhere(fault: str, tmp_path: Path) -> None:
    holds_for_each(
        moves(fault), lambda move: takes_its_cause_along(fault, move[1], tmp_path / "moved.json"),
        named=lambda move: move[0],
    )  # fmt: skip
