"""Node names folded as sites write them, and unfolded again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.missing import BadInput
from dgxcheck.facts.node_lists import unfolded
from dgxcheck.fleet.node_names import folded

FOLDED = [
    (["dgx001", "dgx002", "dgx003", "dgx007"], "dgx[001-003,007]"),
    (["dgx9", "dgx10", "dgx11"], "dgx[9-11]"),
    (["dgx09", "dgx10", "dgx9"], "dgx9,dgx[09-10]"),
    (["r1n10", "r1n0", "r1n00", "r1n099", "r1n100"], "r1n0,r1n[00,10],r1n[099-100]"),
    (["a1-ib", "a2-ib", "b"], "a[1-2]-ib,b"),
    (["login"], "login"),
    (["r1n1", "r1n2", "r2n1"], "r1n[1-2],r2n1"),
    (["x", "x"], "x"),
    ([], ""),
]


@pytest.mark.parametrize(("names", "text"), FOLDED)
def test_folded(names: list[str], text: str) -> None:
    assert folded(names) == text
    assert sorted(unfolded(text)) == sorted(set(names))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("dgx[1-3]", ["dgx1", "dgx2", "dgx3"]),
        ("dgx[01-03,08] login", ["dgx01", "dgx02", "dgx03", "dgx08", "login"]),
        ("r[1-2]n[1-2]", ["r1n1", "r1n2", "r2n1", "r2n2"]),
        ("a,b\nc", ["a", "b", "c"]),
    ],
)
def test_unfolded(text: str, names: list[str]) -> None:
    assert list(unfolded(text)) == names


@pytest.mark.parametrize("text", ["dgx[1-", "dgx[a]", "dgx]", "dgx[1-999999999]", "dgx[]", "dgx[1,,2]", "dgx[010-001]"])
def test_what_is_no_list_of_nodes_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(BadInput, match=r"range|list of nodes|more than|ends before it begins"):
        unfolded(text)


NAMES = st.lists(st.from_regex(r"[a-z]{1,3}[0-9]{0,4}(-ib)?", fullmatch=True), max_size=30)


@given(NAMES)
def test_folding_loses_and_adds_nothing(names: list[str]) -> None:
    assert set(unfolded(folded(names))) == set(names)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        names = unfolded(text)
    except BadInput:
        return
    assert all(name and not set(name) & set("[], \t\n") for name in names)
