"""The NVLink graphs of reference machines, and how the graph of a box differs from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.graph import Graph

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
    return len(box) == len(reference) and _assign(box, reference, anywhere, [], 0, 0)


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


def _all_pairs(gpus: int, links: int) -> dict[tuple[int, int], int]:
    return dict.fromkeys(combinations(range(gpus), 2), links)


FACE = tuple(_all_pairs(4, 1))
CUBE_MESH = (*FACE, *((a + 4, b + 4) for a, b in FACE), *((a, a + 4) for a in range(4)))
"""The edges of a cube and the diagonals of two opposite faces."""
DOUBLED = {(0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (4, 7), (5, 6), (6, 7)}

ALL = (
    Reference("dgx-1-p100", "DGX-1 with P100", 8, 1, dict.fromkeys(CUBE_MESH, 1),
              "NVIDIA DGX-1 System Architecture white paper (2017); recorded topo -m of a DGX-1 (RSE-Sheffield)"),
    Reference("dgx-1-v100", "DGX-1 with V100, HGX-1 and other cube-mesh boards with 8 V100-SXM2", 8, 2,
              {pair: 2 if pair in DOUBLED else 1 for pair in CUBE_MESH},
              "NVIDIA DGX-1 With Tesla V100 white paper (2017); recorded topo -m of a DGX-1 (rapidsai/ucx-py)"),
    Reference("dgx-station-v100", "DGX Station with V100", 4, 2, {**_all_pairs(4, 1), (0, 3): 2, (1, 2): 2},
              "NVIDIA DGX Station white paper WP-V01: 4 links per GPU, fully connected, hence two disjoint pairs"
              " doubled; which ones is not published, so any perfect matching is accepted"),
    Reference("dgx-station-a100", "DGX Station A100, HGX A100 4-GPU", 4, 3, _all_pairs(4, 4),
              "recorded topo -m of nodes with an HGX A100 4-GPU board; that the Station is wired alike is inferred"),
    Reference("dgx-2", "DGX-2, HGX-2", 16, 2, _all_pairs(16, 6),
              "recorded topo -m of a DGX-2 (NVIDIA/nccl-tests issue 78); 12 NVSwitches"),
    Reference("dgx-a100", "DGX A100, HGX A100 8-GPU", 8, 3, _all_pairs(8, 12),
              "NCCL topology of a DGX A100 (NVIDIA/nccl issue 1505); 6 NVSwitches"),
    Reference("dgx-h100", "DGX H100, DGX H200, HGX H100 and H200 8-GPU", 8, 4, _all_pairs(8, 18),
              "recorded topo -m of a DGX H100 (vllm issue 6732); 4 NVSwitches (oracle-quickstart/oci-hpc)"),
    Reference("dgx-b200", "DGX B200, DGX B300, HGX B200 and B300 8-GPU", 8, 5, _all_pairs(8, 18),
              "recorded topo -m of eight B200 (sgl-project/sglang issue 26541) and of eight B300"),
    Reference("gb200-nvl72", "compute tray of a GB200 or GB300 NVL72", 4, 5, _all_pairs(4, 18),
              "recorded topo -m of a GB200 tray (sgl-project/sglang issue 11208)"),
)  # fmt: skip


def matches(graph: Graph, generation: int | Missing) -> tuple[Reference, ...]:
    """References with this graph, up to relabelling."""
    return tuple(each.reference for each in _compared(graph, generation, 0)
                 if not each.missing_gpus and not each.differences)  # fmt: skip


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
