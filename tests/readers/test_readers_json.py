"""JSON objects among other lines: found whole, however long and however laid out, and nothing else."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.missing import Json
from dgxcheck.readers.formats import document, documents

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4), max_leaves=40,
)  # fmt: skip


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=6), st.sampled_from([None, 0, 1, 4]), st.integers(0, 3))
def test_an_object_between_other_lines(value: dict[str, Json], indent: int | None, before: int) -> None:
    inside = json.dumps(value, indent=indent).split("\n")
    lines = (*["a line"] * before, *inside, "another {")
    assert document(lines, before) == (value, before + len(inside))


def test_an_object_behind_many_that_break_off() -> None:
    broken = ['{"a": }'] * 63
    assert [found for found, _ in documents((*broken, '{"b": 1}'), bool)] == [{"b": 1}]
    assert not [*documents((*broken, *broken[:1], '{"b": 1}'), bool)]


@pytest.mark.parametrize("members", [1, 30, 63, 64, 65, 1023, 1024, 1025, 20_000])
def test_a_long_object(members: int) -> None:
    value = {f"member {number}": number for number in range(members)}
    lines = tuple(json.dumps(value, indent=1).split("\n"))
    assert [*documents(lines, bool)] == [(value, range(len(lines)))]
    assert document(lines[:-1], 0) == ({}, 0)  # cut


@pytest.mark.parametrize("text", ["{", "{ int i;", "{\n  x = 1;\n}", '{"a": 1', "{]", "no { brace"])
def test_what_is_no_object(text: str) -> None:
    assert [*documents(tuple(text.split("\n")), lambda _: True)] in ([], [({}, range(0))])
