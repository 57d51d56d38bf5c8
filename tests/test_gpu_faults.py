"""Faults that need a reference machine or a second reading, judged over boxes that are put together by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from test_health_checks import box
from test_health_faults import AHEAD, BAD

from dgxcheck.checks.catalogue import CHECKS
from dgxcheck.checks.check import Box, Growth
from dgxcheck.checks.finding import Status
from dgxcheck.checks.run import run
from dgxcheck.frozen import replace
from dgxcheck.profiles.model import Board, Choice, How, Number, Profile
from dgxcheck.reading import Missing
from dgxcheck.source.library import open_source, shipped
from dgxcheck.survey import COUNTERS, survey

PATHS = dict(shipped())
IDS = {
    "dgx-1-p100": ("10de:15f9", 8),
    "dgx-1-v100": ("10de:1db1", 8),
    "dgx-station-v100": ("10de:1db7", 4),
    "k80-x8": ("10de:102d", 8),
}


def choice(base: str, how: How = "named") -> Choice:
    board, count = IDS[base]
    profile = Profile(
        name=base,
        title=base,
        products=(),
        boards=(board,),
        numbers={"gpu.count": Number(count, "white paper")},
        nvlink_graph="",
        wiring=(),
        wiring_source="",
    )
    return Choice(profile=profile, how=how)


def board(model: str, **numbers: float) -> Board:
    return Board(id=model, name="a board", numbers={key: Number(value, "a dump") for key, value in numbers.items()})


def grown(spec: str) -> Box:
    """The box with the counters of its first and its last moment."""
    source = open_source(spec)
    later = source.later(3600)
    assert not isinstance(later, Missing)
    old, new = survey(source, COUNTERS), survey(later, COUNTERS)
    return replace(box(spec), growth=Growth(old=old, new=new, seconds=later.at_s, how=f"within {later.at_s:g} s"))


@pytest.mark.parametrize("name", sorted(AHEAD))
def test_a_fault_is_found_and_nothing_else(name: str) -> None:
    overlay: dict[str, Any] = json.loads(Path(PATHS[name]).read_text(encoding="utf-8"))
    due = {(each["id"], each["bdf"], each["status"]) for each in overlay["expect"]["findings"]}
    facts = grown(name) if "later" in overlay else box(name)
    findings = run(replace(facts, choice=choice(overlay["base"])), CHECKS)
    assert {(each.id, each.subject.bdf, each.status.value) for each in findings if each.status.value in BAD} == due
    assert all(each.judgement.evidence and each.remedy for each in findings if each.status.value in BAD)


@pytest.mark.parametrize("name", sorted(AHEAD))
def test_without_reference_and_growth_nobody_is_accused_of_more(name: str) -> None:
    bad = {each.id for each in run(box(name), CHECKS) if each.status.value in BAD}
    assert bad <= {"clock.throttle"}


@pytest.mark.parametrize("base", sorted(IDS))
def test_a_healthy_box_has_what_its_reference_has(base: str) -> None:
    whole = replace(box(base), choice=choice(base))
    findings = [each for each in run(whole, CHECKS) if each.id in ("gpu.count", "gpu.model")]
    assert {each.status for each in findings} == {Status.PASS}
    assert len(findings) == 1 + len(whole.gpus)
