"""Curves of a burn-in: bounded however long it runs, and true to the samples."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from dgxcheck.measure.burn_in.result import MOST, QUANTITIES, Curve


def recorded(rows: list[dict[str, Any]], seconds: float) -> Any:
    curve = Curve()
    for row in rows:
        curve.sample(row)
    return curve.fact(seconds)


def test_few_samples_are_kept_as_they_are() -> None:
    fact = recorded([{"temperature": 40 + n, "power_w": 100.04, "sm_clock": None} for n in range(4)], 4.0)
    assert fact == {"at": [0.5, 1.5, 2.5, 3.5], "temperature": [40.0, 41.0, 42.0, 43.0], "power_w": [100.0] * 4,
                    "sm_clock": [None] * 4}  # fmt: skip


@given(length=st.integers(0, 5000))
def test_many_samples_become_few_points_in_their_range(length: int) -> None:
    fact = recorded([{"temperature": n} for n in range(length)], float(length))
    points = fact["temperature"]
    assert len(points) <= MOST
    assert {len(fact[name]) for name in ("at", *QUANTITIES)} == {len(points)}
    assert points == sorted(points)
    assert all(0 <= value <= length for value in points)
    assert all(0 <= at <= length for at in fact["at"])
    assert len(points) >= min(length, MOST // 2)
