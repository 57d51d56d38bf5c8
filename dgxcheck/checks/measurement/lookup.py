"""What was measured, by kind and GPUs, and whom it is about."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import get_args

from dgxcheck.checks.driver import fabric_manager
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Evidence, Judgement, SkipReason, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.bdf import is_bdf
from dgxcheck.facts.measurement import Measurement, Untaken
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import Record, replace
from dgxcheck.topology.expected import between
from dgxcheck.topology.model import Device, Link

ALONE: Mapping[str, tuple[str, ...]] = {
    "measure.host-bandwidth": ("under-load", "host-to-device", "device-to-host", "host-both"),
    "measure.memory-bandwidth": ("device-copy", "device-copy-sm"),
    "measure.memory-integrity": ("memory-integrity",),
    "measure.compute": ("compute",),
}
"""Kinds that are measured at one GPU, by the check that tells of them; a GPU that fails is told by the first."""
PAIRS: Mapping[str, tuple[str, ...]] = {
    "measure.p2p-integrity": ("p2p-integrity",),
    "measure.p2p-bandwidth": ("p2p", "p2p-both", "p2p-off", "p2p-off-both"),
    "measure.p2p-latency": ("latency", "latency-off", "latency-sm"),
}
"""The same of two GPUs."""
START, ALL = "cuda", "all"
"""The kind that tells whether CUDA could be opened."""
INTERRUPTED = "interrupted"
REASONS: Mapping[str, SkipReason] = {reason: reason for reason in get_args(SkipReason)}
NOT_READY = 802
"""``CUDA_ERROR_SYSTEM_NOT_READY``: the fabric manager has not set up the NVSwitches."""
UNREADY = "the NVSwitch fabric is not set up: the fabric manager does not run"


PairClass = tuple[str, float | None]
"""Label of what joins two GPUs, and its line rate in GB/s."""
P2P = ("p2p", "p2p-both")
STAGED = ("p2p-off", "p2p-off-both")
"""The same without peer access: through the host."""


class Figures(Record):
    """Measurements by kind and GPUs."""

    rows: Mapping[tuple[str, str, str], Measurement]
    by_kind: Mapping[str, tuple[Measurement, ...]]
    classes: Mapping[tuple[str, str], PairClass]
    """Of pairs that what joins them is known of: those of one class should be alike."""

    def of(self, kind: str, a: str, b: str = "") -> Measurement | None:
        """That of a kind from ``a`` to ``b``; None where nobody tried."""
        return self.rows.get((kind, a, b))

    def both(self, kind: str, a: str, b: str) -> list[Measurement]:
        """Those of a kind between two GPUs, from ``a`` first."""
        return [row for ends in ((a, b), (b, a)) if (row := self.of(kind, *ends)) is not None]

    def number(self, kind: str, a: str, b: str = "") -> float | None:
        """The figure alone; None where there is none."""
        row = self.of(kind, a, b)
        return None if row is None else row.number

    def kinds(self, *kinds: str) -> list[Measurement]:
        return [row for kind in kinds for row in self.by_kind.get(kind, ())]


def figures(box: Box, check: str) -> Figures | Judgement:
    """All that was measured; what a check says of the host where there is nothing to judge."""
    rows = box.snapshot.measurement
    if isinstance(rows, Missing):
        return unjudged(rows)
    unready = next((row for row in rows if _code(row) == NOT_READY), None)
    if unready is not None:
        return _unready(box, check, unready)
    begun = next((row for row in rows if row.kind == START and row.number is None), None)
    if begun is not None and not _interrupted(begun):
        return _unopened(check, begun)
    by_key = {(row.kind, row.a, row.b): row for row in rows}
    by_kind: dict[str, list[Measurement]] = {}
    for row in by_key.values():
        by_kind.setdefault(row.kind, []).append(row)
    ends = {(row.a, row.b) for row in rows if row.kind in P2P}
    return Figures(
        rows=by_key,
        by_kind={kind: tuple(each) for kind, each in by_kind.items()},
        classes={each: found for each in ends if (found := _class(box, *each)) is not None},
    )


def _class(box: Box, a: str, b: str) -> PairClass | None:
    one, other, link = device(box, a), device(box, b), joined(box, a, b)
    if one is None or other is None or link is None or link.label == "?":
        return None
    line = between(one, other, link, box.topology).line_gbs
    return link.label, None if isinstance(line, Missing) else line


def joined(box: Box, a: str, b: str) -> Link | None:
    """What joins two GPUs of the box; None for those that are known by number alone."""
    one, other = device(box, a), device(box, b)
    return None if one is None or other is None or one is other else box.topology.link(one, other)


def _unopened(check: str, row: Measurement) -> Judgement:
    """CUDA could not be opened, or the measuring was interrupted: one check says so where that is bad."""
    value, seen = row.value, evidence(row)
    if isinstance(value, Untaken) and value.reason != "failed":
        return skip(REASONS.get(value.reason) or "not-supported", value.detail, seen)
    first = next(iter(ALONE))
    if check != first:
        return skip("dependency-failed", f"nothing could be measured: see {first}")
    return Judgement(Status.FAIL, f"CUDA cannot be used: {detail(row)}", evidence=(seen,))


def cut_short(found: Figures, check: str) -> Judgement | None:
    """That the measuring was interrupted, which one check says; None where it came to its end."""
    begun = found.of(START, ALL)
    if begun is None or not _interrupted(begun) or check != next(iter(ALONE)):
        return None
    return Judgement(Status.UNKNOWN, f"the measuring was {detail(begun)}", evidence=(evidence(begun),))


def _interrupted(row: Measurement) -> bool:
    return detail(row).startswith(INTERRUPTED)


def detail(row: Measurement) -> str:
    """Why there is no figure; empty where there is one."""
    value = row.value
    return value.detail if isinstance(value, Untaken) else str(value) if isinstance(value, Missing) else ""


def _unready(box: Box, check: str, row: Measurement) -> Judgement:
    if fabric_manager.down(box):
        return skip("dependency-failed", "the NVSwitch fabric is not up: see driver.fabric")
    first = next(iter(ALONE))
    if check != first:
        return skip("dependency-failed", f"the NVSwitch fabric is not set up: see {first}")
    return Judgement(Status.FAIL, UNREADY, evidence=(evidence(row),))


def device(box: Box, id: str) -> Device | None:
    """The GPU of a bdf; None where a file was imported without a box."""
    return next((gpu for gpu in box.topology.gpus if gpu.bdf == id), None)


def asked(box: Box, *ids: str) -> bool:
    """Is one of these GPUs among those asked about? Those of an imported file without a box all are."""
    known = [device(box, id) for id in ids]
    return any(gpu is None or gpu in box.gpus for gpu in known)


def subject(box: Box, id: str) -> Subject:
    """A GPU of the box, or one that is known by its number alone."""
    gpu = device(box, id)
    if gpu is not None:
        return box.subject(gpu)
    return Subject(kind="gpu", name=name(box, id), bdf=id if is_bdf(id) else None)


def pair(box: Box, a: str, b: str) -> Subject:
    """What joins two GPUs."""
    return replace(subject(box, a), peer=subject(box, b))


def name(box: Box, id: str) -> str:
    """``GPU0``"""
    if id == ALL:
        return "some of the GPUs"
    gpu = device(box, id)
    return gpu.name if gpu is not None else f"GPU@{id}" if ":" in id else f"GPU{id}"


def way(box: Box, row: Measurement) -> str:
    """``GPU0 to GPU1``, or the one GPU."""
    return name(box, row.a) + (f" to {name(box, row.b)}" if row.b else "")


def in_order(box: Box, ids: Iterable[str]) -> list[str]:
    """GPUs as the matrix has them, then others by number."""
    places = {gpu.bdf: place for place, gpu in enumerate(box.topology.gpus)}
    return sorted(set(ids), key=lambda id: (places.get(id, len(places)), len(id), id))


def pairs(box: Box, found: Figures, kinds: Sequence[str]) -> list[tuple[str, str]]:
    """Pairs of two different GPUs for which one of the kinds was tried, each once."""
    rows = [row for row in found.kinds(*kinds) if row.b and row.a != row.b and ALL not in (row.a, row.b)]
    ends = {frozenset((row.a, row.b)) for row in rows if asked(box, row.a, row.b)}
    both = [in_order(box, each) for each in ends]
    ids = in_order(box, (id for each in both for id in each))
    return sorted(((a, b) for a, b in both), key=lambda each: (ids.index(each[0]), ids.index(each[1])))


def evidence(row: Measurement) -> Evidence:
    """The fact as a recording has it."""
    value = row.value
    said: Json = value if isinstance(value, int | float) else None
    if isinstance(value, Missing):
        said = value.reason
    elif isinstance(value, Untaken):
        said = f"{value.reason}: {value.detail}"
    return Evidence(" ".join(filter(None, ("measure", row.kind, row.a, row.b))), said)


def _code(row: Measurement) -> int | None:
    return row.value.code if isinstance(row.value, Untaken) else None
