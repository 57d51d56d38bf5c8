"""One thing that a reference machine has, and how much of it is here."""

from __future__ import annotations

from typing import Literal

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record

Area = Literal["gpu", "nvlink", "memory", "pcie", "network", "integrity", "host"]
WEIGHTS: dict[Area, int] = {
    "gpu": 20, "nvlink": 20, "memory": 15, "pcie": 15, "network": 15, "integrity": 10, "host": 5,
}  # fmt: skip


class Expectation(Record):
    """A number that is expected of one subject, where more is better; yes and no are 1 and 0."""

    area: Area
    id: str
    """``network.rate``"""
    subject: str
    """By name: ``GPU3``, ``mlx5_0/1``, ``host``."""
    measured: int | float | Missing
    """0 for hardware that is not there; Missing for what could not be read."""
    expected: int | float
    unit: str
    source: str
    enough: bool = False
    """Less than expected and nothing missing all the same: firmware, kernels and file systems keep some."""

    @property
    def share(self) -> float | None:
        """From 0 to 1; None where it is not covered."""
        if isinstance(self.measured, Missing):
            return None
        if self.enough or self.measured >= self.expected:
            return 1.0
        return max(0.0, self.measured / self.expected)


class Score(Record):
    """The sum; None where less than half is covered, or nothing is expected."""

    total: float | None
    coverage: float
    """Part of the expectations that could be read."""
    areas: dict[Area, float]
    """0 to 100 for each area with something covered."""
    expectations: tuple[Expectation, ...]

    @property
    def floor(self) -> float | None:
        """What the score is at least, should all that could not be read be missing."""
        return None if self.total is None else rounded(self.total * self.coverage)


def rounded(value: float) -> float:
    """To a tenth, downwards: 100 means that nothing at all is missing."""
    return int(value * 10 + 1e-9) / 10


LEAST_COVERAGE = 0.5


def score(expectations: tuple[Expectation, ...]) -> Score:
    """Mean share per area; areas by weight, over those of the profile that have something covered."""
    shares: dict[Area, list[float]] = {}
    for each in expectations:
        if each.share is not None:
            shares.setdefault(each.area, []).append(each.share)
    covered = sum(len(each) for each in shares.values())
    coverage = covered / len(expectations) if expectations else 0.0
    means = {area: sum(shares[area]) / len(shares[area]) for area in WEIGHTS if area in shares}
    total = None
    if coverage >= LEAST_COVERAGE:
        weight = sum(WEIGHTS[area] for area in means)
        total = rounded(100 * sum(WEIGHTS[area] * mean for area, mean in means.items()) / weight)
    return Score(
        total=total,
        coverage=int(coverage * 1000 + 1e-9) / 1000,
        areas={area: rounded(100 * mean) for area, mean in means.items()},
        expectations=expectations,
    )
