"""Every measurement with what was expected of it and what is made of it: for tables and for programs."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import ruled
from dgxcheck.checks.engine.finding import Judgement, Status
from dgxcheck.checks.measurement import rdma_ports
from dgxcheck.checks.measurement.collectives import judge_collective, judge_ring
from dgxcheck.checks.measurement.compute import judge_compute
from dgxcheck.checks.measurement.expectations import expected_figure
from dgxcheck.checks.measurement.failures import measured_figures, without_figure
from dgxcheck.checks.measurement.host_copies import (
    BY_KERNEL,
    COPIES,
    FigureRule,
    judge_device_copy,
    judge_host_copy,
)
from dgxcheck.checks.measurement.integrity import judge_integrity
from dgxcheck.checks.measurement.lookup import Figures, gpu_name, is_requested, matrix_order
from dgxcheck.checks.measurement.p2p_copies import judge_latency, judge_p2p_copy
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import rows
from dgxcheck.facts.record import Record

RULES: Mapping[str, FigureRule] = {
    **dict.fromkeys(COPIES, judge_host_copy),
    **dict.fromkeys(("device-copy", *BY_KERNEL), judge_device_copy),
    **dict.fromkeys(("memory-integrity", "p2p-integrity"), judge_integrity),
    **dict.fromkeys(("p2p", "p2p-both", "p2p-off", "p2p-off-both"), judge_p2p_copy),
    "latency": judge_latency,
    "collective": judge_collective,
    "ring": judge_ring,
    "compute": judge_compute,
    **dict.fromkeys(rdma_ports.KINDS, rdma_ports.judge_rdma),
}
"""By kind; figures of other kinds are shown and not judged."""
WITHOUT_GPUS = ("ring", "collective")
"""Kinds whose ``a`` and ``b`` are no GPUs."""


class Figure(Record):
    """One measurement, judged by itself."""

    row: Measurement
    a: str
    """Names for people: ``GPU0``; as the fact has them where they are no GPUs."""
    b: str
    expected: float | None
    """In the unit of the measurement; None where nothing is expected."""
    source: str
    """Where the expected figure comes from."""
    verdict: Status | None
    """None where it is not judged."""


def all_figures(box: Box) -> tuple[Figure, ...]:
    """In the order of the kinds, then of the GPUs; those of GPUs that were not asked about are left out."""
    figures, measured = measured_figures(box, ""), rows(box.snapshot.measurement)
    if isinstance(figures, Judgement):
        return ()
    ends = (end for row in measured for end in (row.a, row.b))
    places = {id: place for place, id in enumerate(matrix_order(box, ends))}
    ordered = sorted(measured, key=lambda row: (row.kind, places[row.a], places[row.b]))
    return tuple(_figure(box, figures, row) for row in ordered if _is_shown(box, row))


def _is_shown(box: Box, row: Measurement) -> bool:
    return row.kind in WITHOUT_GPUS or is_requested(box, *filter(None, (row.a, row.b)))


def _figure(box: Box, figures: Figures, row: Measurement) -> Figure:
    named = row.kind not in WITHOUT_GPUS
    judgement = _judge(box, figures, row)
    expected = None if judgement is None or judgement.status is Status.SKIP else expected_figure(box, row)
    return Figure(
        row=row,
        a=gpu_name(box, row.a) if named else row.a,
        b=gpu_name(box, row.b) if named and row.b else row.b,
        expected=None if expected is None else round(expected.value, 3),
        source="" if expected is None else expected.source,
        verdict=None if judgement is None else judgement.status,
    )


def _judge(box: Box, figures: Figures, row: Measurement) -> Judgement | None:
    """None for what is not judged. The diagonal of a matrix is no pair."""
    if row.kind in RULES and row.a != row.b:
        return ruled(RULES[row.kind], box, figures, row)
    return without_figure(box, row)
