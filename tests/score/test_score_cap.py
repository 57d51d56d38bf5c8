"""What the worst finding allows of the score, and machines whose number of GPUs cannot be checked."""

from __future__ import annotations

import measured_box
import pytest
from hypothesis import given
from hypothesis import strategies as st
from judging import judged
from sample import FAULTS
from test_score import held

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Status
from dgxcheck.score.box import CAPS, score_of
from dgxcheck.score.expectation import Score
from dgxcheck.source.recording.shipped import open_source

GOOD = measured_box.of_box(open_source("dgx-1-v100"))
HARMED = measured_box.of_box(open_source("dgx-1-v100-gpu-missing"))


@pytest.mark.parametrize("fault", FAULTS)
def test_no_score_is_above_what_the_verdict_allows(fault: str) -> None:
    document = judged(fault)[1]
    score, most = document["score"], {"fail": 79, "unknown": 89}.get(document["verdict"], 100)
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
