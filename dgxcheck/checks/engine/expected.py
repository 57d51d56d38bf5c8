"""What the reference machine expects of a box, or why nothing is expected."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, skip
from dgxcheck.profiles.model import Number


def expected(box: Box, key: str) -> Number | Judgement:
    """A number of the profile; the skip that stands for it where there is none."""
    if box.choice is None:
        return skip("no-reference", "no reference machine to hold this box to")
    number = box.choice.number(key)
    if number is None:
        return skip("no-reference", f"{box.choice.profile.name} says nothing of {key}")
    return number
