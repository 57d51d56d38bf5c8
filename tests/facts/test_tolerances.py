"""A number and its like are the same within the tolerance of their row, or its slack where that is more."""

from __future__ import annotations

import pytest

from dgxcheck.facts.memory import NumaMemory
from dgxcheck.facts.nature import row
from dgxcheck.facts.nvml.readings import GpuMemory
from dgxcheck.facts.values import Value, is_same

GIB = 1 << 20
"""In kB."""


@pytest.mark.parametrize(("now", "was", "same"), [
    (500 * GIB, 450 * GIB, True), (500 * GIB, 449 * GIB, False),  # 10 %
    (16 * GIB, 14 * GIB, True), (16 * GIB, 13 * GIB, False),  # 2.5 GiB
    ("a", "a", True), ("a", "b", False), ((1, 2), (1, 2), True),
])  # fmt: skip
def test_memory_of_a_node(now: Value, was: Value, same: bool) -> None:
    of = (row(NumaMemory.memory_kb),)
    assert is_same(of, now, was, {"consistency.memory": 10.0}.__getitem__) is same
    assert is_same(of, was, now, {"consistency.memory": 10.0}.__getitem__) is same


def test_what_has_no_tolerance_is_equal_or_not() -> None:
    of = (row(GpuMemory.bdf),)
    assert is_same(of, 1, 1, float)
    assert not is_same(of, 1, 2, float)


def test_another_tolerance_stands_in_for_that_of_the_row() -> None:
    of = (row(GpuMemory.total),)
    limits = {"gpu.uniform-memory": 1.0, "gpu.uniform-display": 5.0}
    assert not is_same(of, 100, 96, limits.__getitem__)
    assert is_same(of, 100, 96, limits.__getitem__, "gpu.uniform-display")
