"""Boxes put together by hand: with a reference machine, with numbers of a board, with a second reading."""

from __future__ import annotations

from test_health_checks import box

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace
from dgxcheck.profiles.model import Board, Number, Profile, SelectedProfile, Selection
from dgxcheck.source.recording.load import open_source, shipped
from dgxcheck.survey import COUNTERS, survey

PATHS = dict(shipped())
IDS = {
    "dgx-1-p100": ("10de:15f9", 8),
    "dgx-1-v100": ("10de:1db1", 8),
    "dgx-station-v100": ("10de:1db7", 4),
    "k80-x8": ("10de:102d", 8),
}


def choice(base: str, how: Selection = "named") -> SelectedProfile:
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
    return SelectedProfile(profile=profile, how=how)


def board(model: str, **numbers: float) -> Board:
    return Board(id=model, name="a board", numbers={key: Number(value, "a dump") for key, value in numbers.items()})


def grown(spec: str) -> Box:
    """The box with the counters of its first and its last moment."""
    source = open_source(spec)
    later = source.later(3600)
    assert not isinstance(later, Missing)
    old, new = survey(source, COUNTERS), survey(later, COUNTERS)
    return replace(box(spec), growth=Growth(old=old, new=new, seconds=later.at_s, how=f"within {later.at_s:g} s"))
