"""The score of a box against its reference machine."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Status
from dgxcheck.score import gpus, machine, measured
from dgxcheck.score.expectation import Score, score
from dgxcheck.score.gpus import gpus_uncertain

CAPS: Mapping[Status, int] = {Status.FAIL: 79, Status.UNKNOWN: 89}
"""The highest score with this verdict: a machine with a fault is not whole, however little of it is missing."""


def score_of(box: Box, verdict: Status = Status.PASS) -> Score | None:
    """The score of a box against its reference machine, capped by the verdict; None without a profile."""
    if box.choice is None:
        return None
    choice = box.choice
    expectations = (*gpus.expected(box, choice), *machine.expected(box, choice), *measured.expected(box, choice))
    return score(expectations, CAPS.get(verdict), gpus_uncertain(box))
