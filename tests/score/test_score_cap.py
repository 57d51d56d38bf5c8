"""What the worst finding allows of the score, and machines whose number of GPUs cannot be checked."""

from __future__ import annotations

import measured_box
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import judged
from test_score import held

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Status
from dgxcheck.score.box import CAPS, score_of
from dgxcheck.score.expectation import Score
from dgxcheck.source.recording.shipped import open_source

GOOD = measured_box.of_box(open_source("dgx-1-v100"))
HARMED = measured_box.of_box(open_source("dgx-1-v100-gpu-missing"))


def no_score_is_above_what_the_verdict_allows(fault: str) -> None:
    document = judged(fault)[1]
    score, most = document["score"], {"fail": 95, "unknown": 97, "warn": 99}.get(document["verdict"], 100)
    if score is None:
        assert document["profile"] is None
        return
    assert score["cap"] == (None if most == 100 else most)
    assert score["total"] is None or score["total"] == min(score["uncapped"], most)


def scored(box: Box, verdict: Status = Status.PASS) -> Score:
    found = score_of(box, verdict)
    assert found is not None
    return found


@given(st.sampled_from(Status), st.sampled_from((GOOD, HARMED)))
def test_a_worse_verdict_never_raises_the_score(verdict: Status, box: Box) -> None:
    plain, score = scored(box), scored(box, verdict)
    assert score.uncapped == plain.total
    assert score.total == min(plain.total or 0, CAPS.get(verdict, 100))
    assert score.areas == plain.areas


def test_a_machine_known_by_its_gpus_alone_has_no_score_unless_it_has_as_many() -> None:
    short, whole = scored(held("dgx-1-v100-gpu-missing", how="gpus")), scored(held("dgx-1-v100", how="gpus"))
    assert (short.total, short.gpus_uncertain) == (None, True)
    assert (whole.total, whole.gpus_uncertain) == (100, False)
    assert not scored(HARMED).gpus_uncertain, "of the product that the firmware names a GPU is missing"


@pytest.mark.parametrize(
    ("fault", "usable", "area", "total"),
    [
        ("dgx-1-v100-gpu-lost", 0.875, None, 87.5),  # an eighth
        ("dgx-1-v100-gpu-missing", 0.875, None, 87.5),
        ("dgx-1-p100-memory-wrong", 0.875, None, 87.5),  # there, and not to be used
        ("dgx-1-v100-switch-dead", 0.75, None, 75),
        ("dgx-1-v100-root-complex", 0.5, None, 50),
        ("dgx-1-v100-mismatch", 0, None, 0),
        ("dgx-a100-fabric-manager-down", 0, None, 0),
        ("dgx-1-v100-gpu-x8", 1, ("pcie", 87.5), 95),  # its link alone
        ("dgx-a100-fabric-unhealthy", 1, ("nvlink", 88.2), 95),
        ("dgx-1-v100-hot", 1, ("gpu", 87.8), 95),
        ("dgx-1-v100-port-down", 1, ("network", 80), 97),  # a warning costs what it measurably costs
        ("dgx-1-v100-mixed-vbios", 1, None, 99),
    ],
)
def test_what_carries_a_failing_cause_cannot_be_used(
    fault: str, usable: float, area: tuple[str, float] | None, total: float
) -> None:
    score = judged(fault)[1]["score"]
    assert (score["usable_gpus"], score["total"]) == (usable, total)
    if area is not None:
        assert score["areas"][area[0]] == area[1]
    else:
        assert score["total"] < 100
