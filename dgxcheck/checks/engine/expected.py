"""Numbers that the reference machine expects."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, skip
from dgxcheck.profiles.model import Number


def expected(box: Box, key: str) -> Number | Judgement:
    """A number of the profile; the skip if there is none."""
    if box.choice is None:
        return skip("no-reference", "no matching reference machine")
    number = box.choice.number(key)
    if number is None:
        return skip("no-reference", f"the profile {box.choice.profile.name} has no {key}")
    return number
