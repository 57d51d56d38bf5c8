"""Gaps: a function whose result is the gap of the first fact that it needs and that is missing."""

from __future__ import annotations

import pytest

from dgxcheck.facts.missing import Gap, Missing, need, or_gap

ONE, OTHER = (Missing(Gap.DENIED, path) for path in ("/one", "/other"))


@or_gap
def total(one: int | Missing, *, other: int | Missing) -> int:
    """Of both."""
    return need(one) + need(other)


@pytest.mark.parametrize(
    ("one", "other", "result"), [(1, 2, 3), (0, 0, 0), (ONE, 2, ONE), (1, OTHER, OTHER), (ONE, OTHER, ONE)]
)
def test_the_first_gap_is_the_result(one: int | Missing, other: int | Missing, result: int | Missing) -> None:
    assert total(one, other=other) == result
    assert (total.__name__, total.__doc__) == ("total", "Of both.")
