"""Copies between host memory and each GPU, and within each GPU's own memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import ruled
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, extended, given, skip, unless
from dgxcheck.checks.measurement.comparisons import (
    below_class,
    gpus_alike,
    runs_differ,
    slower_than,
    unless_link_explains,
)
from dgxcheck.checks.measurement.expectations import (
    against_expected,
    far_below,
    figure_text,
    plain_pass,
    profile_key,
    quantity,
    slow,
)
from dgxcheck.checks.measurement.failures import (
    OUT_OF_MEMORY,
    interruption,
    measured_figures,
    no_figure,
    unless_reported,
    without_figure,
    worst,
)
from dgxcheck.checks.measurement.lookup import (
    OWN,
    SINGLE,
    Figures,
    collect,
    evidence,
    gpu_subject,
    is_requested,
    label,
    matrix_order,
)
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import MIB
from dgxcheck.facts.measurement import Measurement, NotMeasured
from dgxcheck.facts.missing import Missing, need, or_none
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import median

FigureRule = Callable[[Box, Figures, Measurement], Judgement]
"""Of one measurement; ``ruled`` calls it, for where there is no figure it ends early."""
COPIES = {"host-to-device": "device-to-host", "device-to-host": "host-to-device"}
"""Pinned copies, each with its other direction."""
BY_KERNEL = ("host-to-device-sm", "device-to-host-sm", "device-copy-sm")
"""A kernel's reads of host memory are slower than its writes on healthy machines, and than a copy engine's
(https://github.com/NVIDIA/nvbandwidth/issues/24): they are compared with those of other GPUs alone."""
_ENOUGH = 1 << 30
"""Bytes that are free in a GPU on which everything can be measured: a context takes some hundred MiB."""
_TAKE_LITTLE = ("access", "compute", "latency", "latency-off", "latency-sm")
"""Kinds of figures that take next to no memory."""


def judge_host_copy(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """One direction of pinned host copies."""
    unless(no_figure(box, row))
    limit = max(box.settings.limit("measure.pinned"), _least_of_model(box, row))
    other_way = figures.get(COPIES[row.kind], row.a)
    by_reference = unless_link_explains(box, row, against_expected(box, row))
    if by_reference is not None and by_reference.status is not Status.PASS:
        return by_reference
    bad = runs_differ(box, row)
    if bad is None and (row.number or 0) < limit:
        message = f"{figure_text(box, row)} from pinned memory, less than a working slot gives such a GPU"
        bad = slow(row, message, limit, status=Status.WARN)
    bad = bad or slower_than(box, row, other_way, "measure.directions", label(box, other_way) if other_way else "")
    bad = bad or below_class(box, row, gpus_alike(box, figures, row), "measure.directions", "for this model")
    return bad or by_reference or plain_pass(box, row)


def _least_of_model(box: Box, row: Measurement) -> float:
    """What is far below the figure of a reference machine with these GPUs, whatever host they are in; else 0."""
    number = None if box.choice is None else box.choice.profile.numbers.get(profile_key(box, row))
    return 0 if number is None else number.value * far_below(box, row) / 100


def judge_device_copy(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """Copies within a GPU's memory, and those that a kernel makes."""
    unless(no_figure(box, row))
    alike = gpus_alike(box, figures, row)
    by_reference = against_expected(box, row)
    if by_reference is not None and by_reference.status is not Status.PASS:
        return by_reference
    bad = runs_differ(box, row) or below_class(box, row, alike, "measure.symmetry", "for this model")
    if bad is None and by_reference is None and len(alike) < 2:
        return skip("no-reference", f"{figure_text(box, row)}, nothing to compare it with", evidence(row))
    return bad or by_reference or plain_pass(box, row)


def judge_own_copy(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """A GPU's copies to itself against those of other GPUs of its model: no figures of this kind are published."""
    unless(no_figure(box, row))
    others = [other.number for other in gpus_alike(box, figures, row) if other.a != row.a and other.number]
    if len(others) < 2:
        message = f"{figure_text(box, row)}, too few GPUs of its model to compare it with"
        return skip("no-reference", message, evidence(row))
    middle = median(others)
    if (row.number or 0) >= middle * box.settings.limit("measure.derived") / 100:
        return plain_pass(box, row)
    message = f"{figure_text(box, row)}, median of the others of its model {quantity(middle, row.unit)}"
    once = sum(figures.get(kind, row.a, row.a) is not None for kind in ("p2p", "p2p-off")) < 2
    if once and row.a == matrix_order(box, (other.a for other in figures.of_kinds(OWN)))[0]:
        return skip("no-reference", f"{message}; the first copy of a run may be slow", evidence(row))
    return slow(row, message, middle, status=Status.WARN)


def per_gpu(box: Box, check: str, rules: Mapping[str, FigureRule], nothing: str) -> Judged:
    """One judgement for each GPU that has one of the kinds: the worst.

    ``nothing``: the skip's message where none of the kinds was measured.
    """
    figures = given(measured_figures(box, check))
    stopped = interruption(figures, check)
    if stopped is not None:
        yield HOST, stopped
    rows = [row for row in figures.of_kinds(*rules) if is_requested(box, row.a)]
    for id in matrix_order(box, (row.a for row in rows)):
        own = [row for kind in rules for row in rows if (row.kind, row.a) == (kind, id)]
        judged = [(row, ruled(rules[row.kind], box, figures, row)) for row in own]
        yield gpu_subject(box, id), unless_reported(figures, check, combined(box, judged), id)
    if not rows and stopped is None:
        yield HOST, skip("not-recorded", nothing)


def combined(box: Box, judged: Sequence[tuple[Measurement, Judgement]]) -> Judgement:
    """The worst of several figures of one subject; it names the others that are as bad, and has their evidence."""
    first = worst([judgement for _, judgement in judged])
    if first.status is Status.PASS:
        first = next((judgement for _, judgement in judged if judgement.reason == "dependency-failed"), first)
    same = [(row, judgement) for row, judgement in judged if judgement.status is first.status]
    if len(same) < 2 or first.status is Status.SKIP:
        return first
    lowest = min((judgement for _, judgement in same), key=_share)
    facts = tuple(fact for _, judgement in same for fact in judgement.evidence)
    others = [label(box, row) for row, judgement in same if judgement is not lowest]
    also = f"; also {', '.join(others)}" if first.status is not Status.PASS else ""
    return replace(extended(lowest, also), evidence=facts)


def _share(judgement: Judgement) -> float:
    """The part of the expected figure that was reached; infinite where nothing is expected."""
    measured, expected = judgement.measured, judgement.expected
    if not isinstance(measured, int | float) or not isinstance(expected, int | float) or not expected:
        return inf
    return measured / expected


def _judge_load(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """Only that the load failed: pcie.width and pcie.generation judge what NVML reported meanwhile."""
    return without_figure(box, row) or skip("not-in-level", "see pcie.width and pcie.generation")


def judge_host(box: Box) -> Judged:
    id = "measure.host-bandwidth"
    rules: dict[str, FigureRule] = {"under-load": _judge_load, **dict.fromkeys(COPIES, judge_host_copy)}
    rules |= dict.fromkeys(BY_KERNEL[:2], judge_device_copy)
    for at, judgement in per_gpu(box, id, rules, "no copies between host and GPU were measured"):
        yield at, (_without_memory(box, at.bdf) if judgement.reason == "busy" else None) or judgement


@or_none
def _without_memory(box: Box, bdf: str | None) -> Judgement | None:
    """Of a GPU on which no copy at all was measured because it has no memory free, though no process holds any."""
    own = [row for row in collect(box).rows.values() if bdf in (row.a, row.b)]
    full = [row for row in own if isinstance(row.value, NotMeasured) and row.value.code == OUT_OF_MEMORY]
    running, memory = need(need(box.gpu(bdf).processes).compute), box.gpu(bdf).memory
    copied = any(row.number is not None and row.kind not in _TAKE_LITTLE for row in own)
    if not full or copied or running:
        return None
    message, facts = f"no copy was measured on it: {full[0].value}", (evidence(full[0]),)
    free = memory if isinstance(memory, Missing) else memory.free
    if isinstance(free, Missing) or free < _ENOUGH:
        return Judgement(Status.UNKNOWN, f"{message}, and NVML names no process that holds its memory", evidence=facts)
    message += f", though {free // MIB} MiB are free and no process uses it"
    return Judgement(Status.FAIL, message, evidence=facts, fault=Fault.MEASUREMENT_FAILED)


def judge_memory(box: Box) -> Judged:
    """Copies within each GPU."""
    id = "measure.memory-bandwidth"
    rules: dict[str, FigureRule] = {**dict.fromkeys(SINGLE[id], judge_device_copy), OWN: judge_own_copy}
    yield from per_gpu(box, id, rules, "no copies within a GPU were measured")
