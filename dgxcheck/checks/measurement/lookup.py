"""Measurements by kind and GPUs, and the subjects that they are about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from dgxcheck.bandwidth.expected import between
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Evidence, Subject
from dgxcheck.facts.bdf import gpu_at, is_bdf
from dgxcheck.facts.measurement import Measurement, NotMeasured, of_ranks
from dgxcheck.facts.missing import Json, Missing, is_number, known, rows
from dgxcheck.facts.record import Record, remembered, replace
from dgxcheck.facts.typical import gathered
from dgxcheck.package_files import table
from dgxcheck.survey import Snapshot
from dgxcheck.topology.model import Device, Link, Surveyed, Topology

_KINDS = [*table("checks/measurement/labels.tsv")]
SINGLE, PAIRS = (
    gathered((row["check"], row["kind"]) for row in _KINDS if row["of"] == of) for of in ("gpu", "pair")
)
"""Kinds measured at one GPU, and between two, by check; the first check reports a GPU that fails in several."""
P2P = ("p2p", "p2p-both")
STAGED = ("p2p-off", "p2p-off-both")
"""The same without peer access: through host memory."""
OWN = "own-copy"
"""Of p2pBandwidthLatencyTest, from a GPU to itself, read plus write."""
ALL = "all"
_LABELS = {row["kind"]: row["label"] for row in _KINDS}
PairClass = tuple[str, float | None]
"""Label of what joins two GPUs, and its line rate in GB/s."""
UNKNOWN: PairClass = ("?", None)


class Figures(Record):
    """All measurements of a box."""

    rows: Mapping[tuple[str, str, str], Measurement]
    """By kind and GPUs."""
    by_kind: Mapping[str, tuple[Measurement, ...]]
    classes: Mapping[tuple[str, str], PairClass]
    """What joins the pairs whose topology is known: pairs of one class should have the same figures."""
    alike: Mapping[tuple[str, PairClass], tuple[Measurement, ...]]
    """By kind and class, copies between GPUs to which the driver does not refuse peer access."""

    def get(self, kind: str, a: str, b: str = "") -> Measurement | None:
        """The measurement of a kind from ``a`` to ``b``; None where it was not tried."""
        return self.rows.get((kind, a, b))

    def each_way(self, kind: str, a: str, b: str) -> list[Measurement]:
        """The measurements of a kind between two GPUs, from ``a`` first."""
        return [row for ends in ((a, b), (b, a)) if (row := self.get(kind, *ends)) is not None]

    def of_kinds(self, *kinds: str) -> list[Measurement]:
        """The measurements of these kinds, kind by kind."""
        return [row for kind in kinds for row in self.by_kind.get(kind, ())]

    def access_refused(self, a: str, b: str) -> bool:
        """Does the driver refuse peer access between the two? Tools measure the path through the host then."""
        return any(row.value is False for row in self.each_way("access", a, b))


class _Wired(Record, kw_only=False):
    """Facts of a machine and how it is wired, without what was judged of it."""

    snapshot: Snapshot
    topology: Topology


def collect(machine: Surveyed) -> Figures:
    """The measurements of a snapshot by kind and GPUs, with the class of each pair; the last ones are remembered."""
    return _collected(machine.snapshot, machine.topology)


@remembered()
def _collected(snapshot: Snapshot, topology: Topology) -> Figures:
    machine, measured = _Wired(snapshot, topology), snapshot.measurement
    listed = rows(measured)
    by_key = {(row.kind, row.a, row.b): row for row in (*listed, *_own_copies(listed))}
    by_kind = gathered((row.kind, row) for row in by_key.values())
    of_pairs = [row for kind in P2P for row in by_kind.get(kind, ())]
    ends = {(row.a, row.b) for row in of_pairs}
    figures = Figures(
        rows=by_key,
        by_kind={kind: tuple(of_kind) for kind, of_kind in by_kind.items()},
        classes={pair: pair_class for pair in ends if (pair_class := _class(machine, *pair)) is not None},
        alike={},
    )
    alike = gathered(((row.kind, figures.classes.get((row.a, row.b), UNKNOWN)), row) for row in of_pairs
                     if row.a != row.b and not figures.access_refused(row.a, row.b))  # fmt: skip
    return replace(figures, alike={of: tuple(of_class) for of, of_class in alike.items()})


def _own_copies(rows: Sequence[Measurement]) -> list[Measurement]:
    """The diagonals of matrices, copies of a GPU to itself, as ``OWN``; the best of each GPU last, for clocks may still
    rise during the first."""
    diagonal = (row for row in rows if row.kind in (P2P[0], STAGED[0]) and row.a == row.b)
    return [replace(row, kind=OWN, b="") for row in sorted(diagonal, key=lambda row: row.number or 0)]


def _class(machine: Surveyed, a: str, b: str) -> PairClass | None:
    one, other, link = device(machine, a), device(machine, b), link_between(machine, a, b)
    if one is None or other is None or link is None or link.label == "?":
        return None
    return link.label, known(between(machine, one, other).line_gbs)


def device(machine: Surveyed, id: str) -> Device | None:
    """The GPU of a bdf; None where a file was imported without a box."""
    found = machine.topology.device(id)
    return found if found is not None and found.kind == "gpu" and found.bdf == id else None


def link_between(machine: Surveyed, a: str, b: str) -> Link | None:
    """What joins two GPUs of the box; None for GPUs that are known by number alone."""
    one, other = device(machine, a), device(machine, b)
    return None if one is None or other is None or one is other else machine.topology.link(one, other)


def is_requested(box: Box, *ids: str) -> bool:
    """Is one of these GPUs among those asked about? GPUs of a file imported without a box always are."""
    return any((gpu := device(box, id)) is None or gpu in box.gpus for id in ids)


def gpu_subject(box: Box, id: str) -> Subject:
    """A GPU of the box, or one that is known by its number alone."""
    if (gpu := device(box, id)) is not None:
        return box.subject(gpu)
    return Subject(kind="gpu", name=gpu_name(box, id), bdf=id if is_bdf(id) else None)


def pair_subject(box: Box, a: str, b: str) -> Subject:
    """Two GPUs."""
    return replace(gpu_subject(box, a), peer=gpu_subject(box, b))


def gpu_name(box: Box, id: str) -> str:
    """``GPU0``"""
    if id == ALL:
        return "some GPUs"
    gpu = device(box, id)
    return gpu.name if gpu is not None else gpu_at(id) if ":" in id else f"GPU{id}"


def kind_label(kind: str) -> str:
    """``host to device``"""
    return _LABELS.get(kind, kind)


def is_rdma(kind: str) -> bool:
    """Is it a kind of HCAs?"""
    return kind.startswith("rdma-")


def label(box: Box, row: Measurement) -> str:
    """``host to device``; ``GPU0 to GPU1, P2P on``; ``all_reduce over 8 GPUs``"""
    if row.kind == "collective":
        return of_ranks(row)
    if row.kind == "ring":
        return f"copies around ring {row.a}"
    kind = kind_label(row.kind)
    route = f"{gpu_name(box, row.a)} to {gpu_name(box, row.b)}, " if row.b else ""
    return f"{route}{kind}"


def matrix_order(box: Box, ids: Iterable[str]) -> list[str]:
    """GPUs in the order of the matrix, then others by number."""
    places = {gpu.bdf: place for place, gpu in enumerate(box.topology.gpus)}
    return sorted(set(ids), key=lambda id: (places.get(id, len(places)), len(id), id))


def pairs(box: Box, figures: Figures, kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of two different GPUs for which one of the kinds was tried, each once."""
    rows = [row for row in figures.of_kinds(*kinds) if row.b and row.a != row.b and ALL not in (row.a, row.b)]
    ends = {frozenset((row.a, row.b)) for row in rows if is_requested(box, row.a, row.b)}
    ordered = [matrix_order(box, pair) for pair in ends]
    ids = matrix_order(box, (id for pair in ordered for id in pair))
    return sorted(((a, b) for a, b in ordered), key=lambda pair: (ids.index(pair[0]), ids.index(pair[1])))


_MOST = 1e300


def number(value: object) -> float | None:
    """A number in what else is recorded of a measurement; None for anything else."""
    return float(value) if is_number(value) and abs(value) < _MOST else None


def evidence(row: Measurement) -> Evidence:
    """The fact as a recording has it."""
    value = row.value
    content: Json = value if isinstance(value, int | float) else None
    if isinstance(value, Missing):
        content = value.reason
    elif isinstance(value, NotMeasured):
        content = f"{value.reason}: {value}"
    return Evidence(" ".join(filter(None, ("measure", row.kind, row.a, row.b))), content)
