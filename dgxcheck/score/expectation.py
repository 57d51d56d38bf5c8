"""Expectations: what a reference machine has, and how much of it this box has."""

from __future__ import annotations

from typing import Literal

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
from dgxcheck.profiles.model import Number

Area = Literal["gpu", "nvlink", "memory", "pcie", "network", "integrity", "host"]
WEIGHTS: dict[Area, int] = {
    "gpu": 20, "nvlink": 20, "memory": 15, "pcie": 15, "network": 15, "integrity": 10, "host": 5,
}  # fmt: skip


class Expectation(Record, many=True):
    """An expected number of one subject; more is better, yes and no are 1 and 0."""

    area: Area
    id: str
    """``network.rate``"""
    subject: str
    """By name: ``GPU3``, ``mlx5_0/1``, ``host``."""
    measured: int | float | Missing
    """0 for missing hardware, Missing for a number that could not be read."""
    expected: int | float
    unit: str
    source: str
    enough: bool = False
    """Counts in full although below ``expected``: firmware, kernels and file systems reserve some."""

    @property
    def share(self) -> float | None:
        """``measured`` / ``expected``, from 0 to 1; None if it could not be read."""
        if isinstance(self.measured, Missing):
            return None
        if self.enough or self.measured >= self.expected:
            return 1.0
        return max(0.0, self.measured / self.expected)


def of_number(
    number: Number, area: Area, id: str, subject: str, measured: int | float | Missing, unit: str
) -> Expectation:
    """The expectation of a number of a profile or board."""
    return Expectation(area=area, id=id, subject=subject, measured=measured, expected=number.value, unit=unit,
                       source=number.source)


class Score(Record):
    """The weighted score, and its expectations."""

    total: float | None
    """0 to 100; None if less than half of the expectations could be read, there are none, or GPUs may be absent."""
    measured: float | None
    """The weighted mean by the facts alone, whatever the causes: what two runs are compared by."""
    usable_gpus: float
    """0 to 1."""
    gpus_uncertain: bool
    """Is the machine known by its GPUs alone, and are they not as many as the reference machine has?"""
    coverage: float
    """Share of the expectations that could be read, 0 to 1."""
    areas: dict[Area, float]
    """0 to 100 for each area with at least one expectation that could be read."""
    expectations: tuple[Expectation, ...]
    uncounted: tuple[int, ...] = ()
    """Failing causes, by their number from 1, that take nothing of what the reference machine is scored by."""

    @property
    def floor(self) -> float | None:
        """Lower bound of the score: as if everything that could not be read were missing."""
        return None if self.total is None else rounded(self.total * self.coverage)


def rounded(value: float) -> float:
    """Rounded down to a tenth, so that 100 means that nothing is missing."""
    return int(value * 10 + 1e-9) / 10


LEAST_COVERAGE = 0.5


def score(expectations: tuple[Expectation, ...], gpus_uncertain: bool = False, usable_gpus: float = 1) -> Score:
    """The mean of the areas' mean shares, weighted by ``WEIGHTS`` over the areas that could be read."""
    shares = gathered(
        (expectation.area, expectation.share) for expectation in expectations if expectation.share is not None
    )
    covered = sum(map(len, shares.values()))
    coverage = covered / len(expectations) if expectations else 0.0
    means = {area: sum(shares[area]) / len(shares[area]) for area in WEIGHTS if area in shares}
    mean = None
    if coverage >= LEAST_COVERAGE and not gpus_uncertain:
        weight = sum(WEIGHTS[area] for area in means)
        mean = sum(WEIGHTS[area] * share for area, share in means.items()) / weight
        mean = rounded(100 * min(mean, usable_gpus))
    return Score(
        total=mean, measured=mean, usable_gpus=usable_gpus, gpus_uncertain=gpus_uncertain,
        coverage=int(coverage * 1000 + 1e-9) / 1000,
        areas={area: rounded(100 * share) for area, share in means.items()}, expectations=expectations,
    )  # fmt: skip
