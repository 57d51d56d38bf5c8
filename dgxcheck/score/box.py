"""The score of a box against its reference machine."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.score import gpus, machine, measured
from dgxcheck.score.expectation import Score, score


def score_of(box: Box) -> Score | None:
    """The score of a box against its reference machine; None without a profile."""
    if box.choice is None:
        return None
    choice = box.choice
    return score((*gpus.expected(box, choice), *machine.expected(box, choice), *measured.expected(box, choice)))
