"""The NVLink graphs of reference machines, and how the graph of a box differs from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.package_files import table
from dgxcheck.topology.nvlinks import MOST_LINKS, Graph

Rows = list[list[int]]
KnownRows = Sequence[Sequence[int | None]]


def fewest_differences(box: Rows, reference: Rows, limit: int) -> tuple[int, ...] | None:
    """The labels for the GPUs of ``box`` that leave the fewest differing pairs, or None beyond ``limit``.

    The reference may have more GPUs: pairs of those that the box lacks do not count. Of equally good labellings the
    lexicographically first is taken, so that a box which is numbered as its reference keeps its numbers.
    """
    if len(box) > len(reference):
        return None
    # lower bounds of the differing pairs of one GPU under a label, whatever the other labels are
    apart = [[(Counter(row) - Counter(other)).total() for other in reference] for row in box]
    for bound in range(limit + 1):
        labels: list[int] = []
        if _assign(box, reference, apart, labels, bound, 0):
            return tuple(labels)
    return None


def fits(box: KnownRows, reference: Rows) -> bool:
    """Do the known pairs of a box (None: unknown) match a reference of as many GPUs under some labelling?"""
    anywhere = [[0] * len(reference) for _ in box]
    return _assign(box, reference, anywhere, [], 0, 0)


def _assign(box: KnownRows, reference: Rows, apart: Rows, labels: list[int], bound: int, differing: int) -> bool:
    gpu = len(labels)
    if gpu == len(box):
        return True
    row = box[gpu]
    for label in range(len(reference)):
        if label in labels or apart[gpu][label] > bound:
            continue
        now = differing + sum(row[i] not in (None, reference[label][other]) for i, other in enumerate(labels))
        if now > bound:
            continue
        labels.append(label)
        if _assign(box, reference, apart, labels, bound, now):
            return True
        labels.pop()
    return False


FEWEST_GPUS = 3


class Reference(Record, kw_only=False):
    """One NVLink graph, and the machines that have it."""

    name: str
    machines: str
    gpus: int
    generation: int
    pairs: dict[tuple[int, int], int]
    source: str

    def rows(self) -> Rows:
        """The symmetric matrix of counts."""
        rows = [[0] * self.gpus for _ in range(self.gpus)]
        for (a, b), links in self.pairs.items():
            rows[a][b] = rows[b][a] = links
        return rows


class PairDifference(Record, kw_only=False):
    """A pair of GPUs, by the box's names, whose number of NVLinks differs from the reference."""

    a: str
    b: str
    has: int
    expected: int


class Nearest(Record):
    """The reference with the fewest differences from a box."""

    reference: Reference
    differences: tuple[PairDifference, ...]
    missing_gpus: int
    """How many GPUs the reference has more than the box; their pairs are not in ``differences``."""
    labels: tuple[int, ...]
    """The reference's number of each GPU of the box."""


def _pairs(words: str, gpus: int) -> dict[tuple[int, int], int]:
    """Of ``all 6`` (every pair has six links), or ``0-1 0-3x2 ..``."""
    if words.startswith("all "):
        return dict.fromkeys(combinations(range(gpus), 2), int(words[4:]))
    split = (word.replace("x", "-").split("-") for word in words.split())
    return {(int(a), int(b)): int(links[0]) if links else 1 for a, b, *links in split}


ALL = tuple(
    Reference(
        row["name"], row["machines"], int(row["gpus"]), int(row["generation"]),
        _pairs(row["pairs"], int(row["gpus"])), row["source"],
    )
    for row in table("topology/references.tsv")
)

THROUGH_SWITCHES = frozenset(each.name for each in ALL if sum(each.rows()[0]) > MOST_LINKS)
"""Graphs of machines with NVSwitches: each link counts for every peer, so that a GPU seems to have more than it has."""


def matches(graph: Graph, generation: int | Missing) -> tuple[Reference, ...]:
    """References with this graph, up to relabelling."""
    return tuple(each.reference for each in _compared(graph, generation, 0) if not each.missing_gpus)


def possible(rows: KnownRows) -> tuple[Reference, ...]:
    """References that a box with some unknown pairs (None) can still match; none if no link is known."""
    counts = {count for i, row in enumerate(rows) for j, count in enumerate(row) if i != j and count is not None}
    if not any(counts):
        return ()
    alike = ((each, _counts(each.rows())) for each in ALL if each.gpus == len(rows))
    return tuple(each for each, own in alike if counts <= own and (len(own) == 1 or fits(rows, each.rows())))


def _counts(rows: Rows) -> set[int]:
    return {count for i, row in enumerate(rows) for j, count in enumerate(row) if i != j}


def nearest(graph: Graph, generation: int | Missing) -> Nearest | None:
    """The reference with the fewest differing pairs, or None where none is close enough.

    Close enough for the differences to be faults: no more differing pairs and missing GPUs together than one GPU has
    peers (a GPU without any link is the largest single fault), at least three GPUs and half of the reference's, and
    with missing GPUs the links connect all the others. Hardware faults never add links, so a reference that explains
    the box without extra links comes first, then one with all its GPUs present.
    """
    candidates = _compared(graph, generation, None)
    return min(
        (candidate for candidate in candidates if not candidate.missing_gpus or _is_joined(graph.rows())),
        key=lambda candidate: (
            any(difference.has > difference.expected for difference in candidate.differences),
            candidate.missing_gpus,
            len(candidate.differences),
        ),
        default=None,
    )


def _compared(graph: Graph, generation: int | Missing, limit: int | None) -> Iterator[Nearest]:
    box = graph.rows()
    gpus = len(box)
    for reference in ALL:
        if isinstance(generation, int) and generation != reference.generation:
            continue
        if not max(FEWEST_GPUS, reference.gpus / 2) <= gpus <= reference.gpus:
            continue
        rows = reference.rows()
        peers = max(sum(links > 0 for links in row) for row in rows)
        most = min(gpus - 1, peers - (reference.gpus - gpus)) if limit is None else limit
        alike = len(_counts(rows)) == 1  # then the box's own labels are as good as any
        labels = tuple(range(gpus)) if alike else fewest_differences(box, rows, most)
        if labels is None:
            continue
        differences = tuple(PairDifference(graph.names[i], graph.names[j], box[i][j], expected)
                            for i, j in combinations(range(gpus), 2)
                            if box[i][j] != (expected := rows[labels[i]][labels[j]]))
        if len(differences) <= most:
            yield Nearest(
                reference=reference, differences=differences, missing_gpus=reference.gpus - gpus, labels=labels
            )


def _is_joined(rows: Rows) -> bool:
    reached, waiting = {0}, [0]
    while waiting:
        row = rows[waiting.pop()]
        more = [gpu for gpu, links in enumerate(row) if links and gpu not in reached]
        reached.update(more)
        waiting += more
    return len(reached) == len(rows)
