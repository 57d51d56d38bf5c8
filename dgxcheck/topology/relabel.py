"""Matching of two small multigraphs up to relabelling: branch and bound over the labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

Rows = list[list[int]]


def fewest_differences(box: Rows, reference: Rows, limit: int) -> tuple[int, ...] | None:
    """The labels for the GPUs of ``box`` that leave the fewest differing pairs, or None beyond ``limit``.

    The reference may have more GPUs: pairs of those that the box lacks do not count. Of equally good labellings the
    lexicographically first is taken, so that a box which is numbered as its reference keeps its numbers.
    """
    if len(box) > len(reference):
        return None
    apart = [[_apart(row, other) for other in reference] for row in box]
    for bound in range(limit + 1):
        labels: list[int] = []
        if _assign(box, reference, apart, labels, bound, 0):
            return tuple(labels)
    return None


def fits(box: Sequence[Sequence[int | None]], reference: Rows) -> bool:
    """Do the known pairs of a box (None: unknown) match a reference of as many GPUs under some labelling?"""
    labels: list[int] = []

    def assign() -> bool:
        gpu = len(labels)
        if gpu == len(box):
            return True
        for label in range(len(reference)):
            if label not in labels and all(
                box[gpu][i] in (None, reference[label][other]) for i, other in enumerate(labels)
            ):
                labels.append(label)
                if assign():
                    return True
                labels.pop()
        return False

    return len(box) == len(reference) and assign()


def _apart(row: list[int], other: list[int]) -> int:
    """Lower bound of the differing pairs of one GPU under a label, whatever the other labels are."""
    return (Counter(row) - Counter(other)).total()


def _assign(box: Rows, reference: Rows, apart: Rows, labels: list[int], bound: int, differing: int) -> bool:
    gpu = len(labels)
    if gpu == len(box):
        return True
    row = box[gpu]
    for label in range(len(reference)):
        if label in labels or apart[gpu][label] > bound:
            continue
        now = differing + sum(row[i] != reference[label][other] for i, other in enumerate(labels))
        if now > bound:
            continue
        labels.append(label)
        if _assign(box, reference, apart, labels, bound, now):
            return True
        labels.pop()
    return False
