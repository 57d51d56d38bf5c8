"""The score of a box."""

from __future__ import annotations

from dgxcheck.checks.check import Box
from dgxcheck.score import gpus, machine
from dgxcheck.score.expectation import Score, score


def of_box(box: Box) -> Score | None:
    """How much of its reference machine's capability is there; None without a reference."""
    if box.choice is None:
        return None
    return score((*gpus.expected(box, box.choice), *machine.expected(box, box.choice)))
