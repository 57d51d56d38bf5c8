"""Every measurement with what was expected of it and what is made of it: for tables and for programs."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.measurement.collectives import reduced, ringed
from dgxcheck.checks.measurement.compute import calculated
from dgxcheck.checks.measurement.expectations import due
from dgxcheck.checks.measurement.host_copies import COPIES, Rule, copied, copied_within
from dgxcheck.checks.measurement.integrity import kept
from dgxcheck.checks.measurement.latency import waited
from dgxcheck.checks.measurement.lookup import Figures, asked, figures, in_order, name
from dgxcheck.checks.measurement.p2p_copies import moved
from dgxcheck.checks.measurement.untaken import untaken
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.record import Record

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(COPIES, copied),
    **dict.fromkeys(("device-copy", "device-copy-sm"), copied_within),
    **dict.fromkeys(("memory-integrity", "p2p-integrity"), kept),
    **dict.fromkeys(("p2p", "p2p-both", "p2p-off", "p2p-off-both"), moved),
    "latency": waited,
    "collective": reduced,
    "ring": ringed,
    "compute": calculated,
}
"""By kind; what has none is shown and not judged."""
GPUS_AT = {"ring": (), "collective": ()}
"""Kinds whose ``a`` and ``b`` are no GPUs."""


class Figure(Record):
    """One measurement, judged by itself."""

    row: Measurement
    a: str
    """Names for people: ``GPU0``; as the fact has them where they are no GPUs."""
    b: str
    expected: float | None
    source: str
    """Where that comes from."""
    verdict: Status | None
    """None where nothing is made of it."""


def all_figures(box: Box) -> tuple[Figure, ...]:
    """In the order of the kinds, then of the GPUs; those of GPUs that were not asked about are left out."""
    found = figures(box, "")
    rows = box.snapshot.measurement
    if isinstance(found, Judgement) or not isinstance(rows, tuple):
        return ()
    places = {id: place for place, id in enumerate(in_order(box, (end for row in rows for end in (row.a, row.b))))}
    ordered = sorted(rows, key=lambda row: (row.kind, places[row.a], places[row.b]))
    return tuple(_figure(box, found, row) for row in ordered if _wanted(box, row))


def _wanted(box: Box, row: Measurement) -> bool:
    return row.kind in GPUS_AT or asked(box, *filter(None, (row.a, row.b)))


def _figure(box: Box, found: Figures, row: Measurement) -> Figure:
    named = row.kind not in GPUS_AT
    said = _said(box, found, row)
    limit = None if said is None or said.status is Status.SKIP else due(box, row)
    return Figure(
        row=row,
        a=name(box, row.a) if named else row.a,
        b=name(box, row.b) if named and row.b else row.b,
        expected=None if limit is None else round(limit.value, 3),
        source="" if limit is None else limit.source,
        verdict=None if said is None else said.status,
    )


def _said(box: Box, found: Figures, row: Measurement) -> Judgement | None:
    """The diagonal of a matrix is no pair."""
    if row.kind in RULES and row.a != row.b:
        return RULES[row.kind](box, found, row)
    return untaken(box, row)
