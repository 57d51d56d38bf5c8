"""Locked memory from /proc/self/limits."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.facts.memlock import Memlock
from dgxcheck.reading import Gap, Missing
from probes.memlock import max_locked_memory

HEAD = "Limit                     Soft Limit           Hard Limit           Units     \n"


@pytest.mark.parametrize(
    ("soft", "hard", "due"),
    [
        ("8388608", "8388608", Memlock(soft=8388608, hard=8388608)),
        ("65536", "unlimited", Memlock(soft=65536, hard=None)),
        ("unlimited", "unlimited", Memlock(soft=None, hard=None)),
    ],
)
def test_limits(soft: str, hard: str, due: Memlock) -> None:
    text = f"{HEAD}Max open files            1024  4096  files\nMax locked memory         {soft:21}{hard:21}bytes\n"
    assert max_locked_memory(text, "x") == due


@pytest.mark.parametrize(
    "text", ["", HEAD, "Max locked memory", "Max locked memory 1 2", "Max locked memory 1 2 pages"]
)
def test_no_such_line_is_garbled(text: str) -> None:
    got = max_locked_memory(text, "x")
    assert isinstance(got, Missing)
    assert got.gap is Gap.GARBLED


@given(st.text())
def test_anything(text: str) -> None:
    for given_text in (text, f"Max locked memory {text}"):
        got = max_locked_memory(given_text, "x")
        assert isinstance(got, Memlock | Missing)
        if isinstance(got, Memlock):
            assert all(each is None or isinstance(each, Missing) or each >= 0 for each in (got.soft, got.hard))
