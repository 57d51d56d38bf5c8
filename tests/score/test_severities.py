"""The scores of shipped faults agree in their order with what the faults take, as written down beforehand."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from judging import briefly
from sample import FAULTS

WRITTEN = Path(__file__).with_name("severities.txt")


def _ranks(values: list[float]) -> list[float]:
    """From 0; equal values share the mean of their ranks."""
    below, alike = sorted(values), Counter(values)
    return [below.index(value) + (alike[value] - 1) / 2 for value in values]


def rank_agreement(one: list[float], other: list[float]) -> float:
    """Spearman's: the correlation of the ranks."""
    pairs = [*zip(_ranks(one), _ranks(other), strict=True)]
    mean = (len(pairs) - 1) / 2
    along = sum((a - mean) * (b - mean) for a, b in pairs)
    return float(along / (sum((a - mean) ** 2 for a, _ in pairs) * sum((b - mean) ** 2 for _, b in pairs)) ** 0.5)


def test_rank_agreement() -> None:
    assert rank_agreement([1, 2, 3], [5, 7, 9]) == pytest.approx(1)
    assert rank_agreement([1, 2, 3], [9, 7, 5]) == pytest.approx(-1)
    assert rank_agreement([1, 2, 2, 4], [1, 2, 2, 4]) == pytest.approx(1)


@pytest.mark.of_all_faults
def test_worse_faults_score_less() -> None:
    left: list[float] = []
    scores: list[float] = []
    for line in WRITTEN.read_text("utf-8").splitlines():
        severity, fault = line.split(maxsplit=2)[:2]
        score = None if severity == "#" else briefly(fault)["score"]
        if score and score["total"] is not None:
            left.append(-float(severity))
            scores.append(score["total"])
    assert len(scores) >= 55
    assert rank_agreement(left, scores) >= 0.92


@pytest.mark.of_all_faults
def test_neither_score_nor_confidence_is_nearly_always_the_same() -> None:
    documents = [briefly(fault) for fault in FAULTS]
    totals = Counter(document["score"]["total"] for document in documents if document["score"])
    levels = Counter(cause["confidence"]["level"] for document in documents for cause in document["causes"])
    assert len(totals) >= 55
    assert max(totals.values()) <= sum(totals.values()) / 6
    assert max(levels.values()) <= sum(levels.values()) / 2
