"""The median and the most common values are those of the standard library."""

from __future__ import annotations

import statistics
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.typical import majority, median, multimode, odd_one, unlike_most


@given(st.lists(st.integers() | st.floats(allow_nan=False, allow_infinity=False, width=32), min_size=1))
def test_the_median_is_that_of_statistics(values: list[float]) -> None:
    assert median(values) == statistics.median(values)
    assert median(iter(values)) == median(values)


@given(st.lists(st.sampled_from(["", "a", "b", None])))
def test_the_most_common_values_are_those_of_statistics(values: list[str | None]) -> None:
    assert multimode(values) == statistics.multimode(values)


def test_nothing_has_no_median() -> None:
    with pytest.raises(ValueError, match="no median"):
        median([])


@pytest.mark.parametrize(("values", "usual", "odd"), [
    ({"a": 1}, 1, {}), ({"a": 1, "b": 2, "c": 2}, 2, {"a": 1}), ({"a": 2, "b": 1}, 2, {"b": 1}),
])  # fmt: skip
def test_what_is_unlike_most(values: dict[str, int], usual: int, odd: dict[str, int]) -> None:
    assert unlike_most(values) == (usual, odd)


@pytest.mark.parametrize(("values", "most"), [
    ("", None), ("a", "a"), ("ab", None), ("aab", "a"), ("aabb", None), ("abb", "b"),
])  # fmt: skip
def test_a_majority_is_more_than_half(values: str, most: str | None) -> None:
    assert majority(values) == majority(Counter(values)) == most


@pytest.mark.parametrize(("values", "found"), [
    ("", []), ("aaab", [(3, "b", "a")]), ("aab", []), ("aaabb", []), ("aaabc", []), ("aaaa", []),
])  # fmt: skip
def test_only_one_is_odd_among_enough_others(values: str, found: list[tuple[int, str, str]]) -> None:
    assert [*odd_one(dict(enumerate(values)))] == found
