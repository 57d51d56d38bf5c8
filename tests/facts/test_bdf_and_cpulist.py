"""Spellings of PCI addresses and lists of CPUs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.bdf import PATTERN, as_bdf, is_bdf, is_root_bus
from dgxcheck.facts.sysfs import cpulist, difference, first_shared, ranges


@pytest.mark.parametrize(
    ("text", "bdf"),
    [
        ("00000000:06:00.0", "0000:06:00.0"),
        ("0:0A:1f.7", "0000:0a:1f.7"),
        ("10000:e1:00.0", "10000:e1:00.0"),
        ("0001abcd:e1:00.0\n", "1abcd:e1:00.0"),
        ("06:00.0", None),
        ("0000:06:00", None),
        ("0000:06:20.0", None),
        ("0000:06:00.8", None),
        ("0000:06:00.00", None),
        ("000000000:06:00.0", None),
        ("0000:6:00.0", None),
        ("0000:0x:00.0", None),
        ("0000:+6:00.0", None),
        ("", None),
    ],
)
def test_bdf_as_sysfs_spells_it(text: str, bdf: str | None) -> None:
    assert as_bdf(text) == bdf


@pytest.mark.parametrize("text", ["6:0", "06:00", "6:0.0", "0:6:0", "0000:06:00.0", "00000000:6:0.0"])
def test_short_spellings(text: str) -> None:
    assert as_bdf(text, short=True) == "0000:06:00.0"


@pytest.mark.parametrize("text", ["6", "GPU0", "6:0.", ":0", "006:0", "1:2:3:4", "6:20", "GPU-aa:bb"])
def test_no_short_spelling(text: str) -> None:
    assert as_bdf(text, short=True) is None


def test_names_in_sysfs() -> None:
    assert is_bdf("0000:06:00.0")
    assert is_bdf("10000:e1:00.0")
    assert not any(map(is_bdf, ("00000000:06:00.0", "0000:06:00.0\n", "0000:0A:00.0", "pci0000:80", "0000:06:00")))
    assert is_root_bus("pci0000:80")
    assert not is_root_bus("pci0000:8")
    assert not is_root_bus("0000:80:00.0")


@given(st.text(alphabet="0123456789abcdefABCDEF:. \nx", max_size=18), st.booleans())
def test_what_is_read_as_a_bdf_is_one(text: str, short: bool) -> None:
    bdf = as_bdf(text, short)
    assert bdf is None or (is_bdf(bdf) and re.fullmatch(PATTERN, bdf))
    assert is_bdf(text) == (as_bdf(text) == text)


@pytest.mark.parametrize("text", ["0-", "a-b", "-1", "1,,2", "3-1", "1_0", "²", "0-9999999999"])
def test_no_cpulist(text: str) -> None:
    assert ranges(text) is None


@given(st.lists(st.tuples(st.integers(0, 8191), st.integers(1, 64))))
def test_cpulist_there_and_back(runs: list[tuple[int, int]]) -> None:
    due = tuple(range(first, first + length) for first, length in runs)
    assert ranges(f"{cpulist(due)}\n") == due


@pytest.mark.parametrize(
    ("present", "online", "left"),
    [
        ("0-79", "0-35,40-75", "36-39,76-79"), ("0-79", "0-79", ""), ("0-3", "", "0-3"), ("0-3", "2", "0-1,3"),
        ("0-3,8-11", "2-9", "0-1,10-11"), ("8-11,0-3", "0-1,10", "2-3,8-9,11"), ("0-1", "0-9", ""),
        ("0-999999999", "5", "0-4,6-999999999"),
    ],
)  # fmt: skip
def test_the_numbers_that_another_list_lacks(present: str, online: str, left: str) -> None:
    assert cpulist(difference(ranges(present) or (), ranges(online) or ())) == left


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        ("0-19,40-59", "20-39,60-79", None), ("0-19,40-59", "59-79", 59), ("8,0-3", "3-5", 3), ("", "0-9", None),
        ("0-999999999", "7-999999999", 7),
    ],
)  # fmt: skip
def test_the_first_number_in_both_lists(one: str, other: str, shared: int | None) -> None:
    assert first_shared(ranges(one) or (), ranges(other) or ()) == shared
    assert first_shared(ranges(other) or (), ranges(one) or ()) == shared
