"""A cause is found by walking the topology: a fault that moves to any other place of its box takes its cause along."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from blamed import blamed, due
from judging import judged
from layers import disagreements
from moved_faults import KINDS, STAYS, moves, overlay
from moving import Move
from sample import FAULTS, FOUND_BY, swept
from test_fault_layers import loaded
from wired import wired

from dgxcheck.source.recording.overlay import applied


def cases() -> Iterator[Any]:
    """Every fault with each of its other places; the last of one fault that each check finds is in ``make test``."""
    few = {*FOUND_BY.values()}
    for fault in FAULTS:
        others = [*moves(fault)]
        for number, (place, move) in enumerate(others, start=1):
            marks = () if fault in few and number == len(others) else pytest.mark.exhaustive
            yield pytest.param(fault, move, id=f"{fault} to {place}", marks=marks)


def test_each_fault_moves_or_has_a_reason_to_stay() -> None:
    found = sorted(fault for fault in FAULTS if overlay(fault)["expect"]["findings"])
    assert sorted([*STAYS, *(fault for faults, _ in KINDS for fault in faults)]) == found


@pytest.mark.parametrize("fault", swept([fault for faults, _ in KINDS for fault in faults]))
def test_a_fault_that_moves_nowhere_is_the_same(fault: str) -> None:
    here = overlay(fault)
    there = Move(wired(here["base"]), {}).overlay(here)
    one, other = (applied(each, fault, loaded) for each in (here, there))
    assert (one.lines, one.later) == (other.lines, other.later)


@pytest.mark.parametrize(("fault", "move"), [*cases()])
def test_a_fault_takes_its_cause_along(fault: str, move: Move, tmp_path: Path) -> None:
    path = tmp_path / "moved.json"
    here = overlay(fault)
    there = move.overlay(here)
    assert bool(disagreements(applied(there, fault, loaded).lines)) == ("disagrees" in here["expect"])
    path.write_text(json.dumps(there), encoding="utf-8")
    document = judged(str(path))[1]
    assert blamed(document) == [due(fault, move)]
    assert document["unexplained"] == []
