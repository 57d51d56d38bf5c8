"""Two faults at two places of a box: exactly the two causes that were put in."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest
from blamed import blamed, due, places
from combining import combined
from judging import judged
from moved_faults import moves, overlay
from moving import Move
from sample import FAULTS, swept

PAIRS, QUICK = 48, 6
"""How many pairs are judged, and how many of them in the quick run."""
Case = tuple[str, str, Move]
Two = tuple[tuple[str, Move], tuple[str, Move]]
Pair = tuple[Two, dict[str, Any], str]
"""Faults, the overlay of both, and their names and places."""
OTHERWISE = {
    "which switch's adapter is elsewhere, and which is gone": (
        {"dgx-1-v100-hca-missing", "dgx-1-v100-hca-wrong-slot"},
    ),
    "without an adapter below its switch nobody asks for a GPU's MaxPayload": (
        {"dgx-1-v100-hca-missing", "dgx-1-v100-max-payload"},
        {"dgx-1-v100-hca-wrong-slot", "dgx-1-v100-max-payload"},
    ),
    "two hot GPUs of a water-cooled machine share what cools them": ({"dgx-station-v100-one-hot"},),
    "the NVLinks of two GPUs can lead to one NVSwitch": ({"dgx-a100-nvlink-recovery-total", "dgx-a100-nvlink-slow"},),
    "the NVLinks between two GPUs explain the Xids of both": ({"dgx-1-v100-xid-74"},),
    "the graph that is left equals the good one the other way round": (
        {"dgx-station-v100-gpu-missing", "dgx-station-v100-nvlink-wrong-peer"},
    ),
    "one command sets what several GPUs lack": tuple(
        {fault} for fault in FAULTS
        if fault.endswith(("-application-clock", "-clocks-locked", "-compute-mode", "-ecc-off", "-exclusive",
                           "-persistence-off", "-prohibited"))
    ),
    "where a GPU is not counted, the node is another GPU's": tuple(
        {"dgx-1-v100-node-shut", f"dgx-1-v100-{gone}"} for gone in ("gpu-missing", "off-bus-at-load", "bar1-unassigned")
    ),
}
"""Why two faults together can be something else as well."""


@cache
def chosen() -> list[Pair]:
    """The same pairs each time, of each box as many as it has faults."""
    random = Random(5)
    cases = [(fault, place, move) for fault in FAULTS for place, move in moves(fault)]
    apart = [two for those in OTHERWISE.values() for two in those]
    found: list[Pair] = []
    while len(found) < PAIRS:
        one = random.choice(cases)
        other = random.choice([case for case in cases if case[2].box is one[2].box])
        if {one[0], other[0]} not in apart and (both := together(one, other)) is not None:
            found.append(both)
    return found


def together(one: Case, other: Case) -> Pair | None:
    """Both at once, where they are at different devices."""
    (a, there, move), (b, elsewhere, way) = one, other
    if places(a, move) & places(b, way):
        return None
    both = combined(move.overlay(overlay(a)), way.overlay(overlay(b)))
    if both is None:
        return None
    return ((a, move), (b, way)), both, f"{a} to {there}, {b} to {elsewhere}"


@pytest.mark.in_ci
@pytest.mark.parametrize("number", swept(range(PAIRS), range(QUICK)))
def test_each_of_two_faults_has_its_cause(number: int, tmp_path: Path) -> None:
    faults, both, named = chosen()[number]
    path = tmp_path / "both.json"
    path.write_text(json.dumps(both), encoding="utf-8")
    document = judged(str(path))[1]
    # what is done about one may depend on the other: nothing resets GPUs that NVLinks join to one that is gone
    found, expected = ({each._replace(action="") for each in those} for those in
                       (blamed(document), (due(fault, move) for fault, move in faults)))  # fmt: skip
    assert found == expected, named
    assert len(document["causes"]) == 2
    assert document["unexplained"] == []
