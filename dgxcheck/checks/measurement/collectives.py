"""Traffic of all GPUs at once: rings of copies, and the results of NCCL's own tests."""

from __future__ import annotations

from typing import TypeGuard

from dgxcheck.bandwidth.links import copies_gbs
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import remedy_of, ruled
from dgxcheck.checks.engine.expected import between_all
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, counted, given, judged, skip, unless
from dgxcheck.checks.measurement import paths
from dgxcheck.checks.measurement.comparisons import over_network, runs_differ
from dgxcheck.checks.measurement.expectations import against_expected, figure_text, pair_link, quantity, slow
from dgxcheck.checks.measurement.failures import measured_figures, without_figure, worst
from dgxcheck.checks.measurement.lookup import Figures, device, evidence, gpu_name, label
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Json, items_of, members_of
from dgxcheck.facts.record import replace

ID = "measure.collective"
LEAST_BYTES = 32 << 20
"""Below this NCCL does not reach its bandwidth: 90 % at 32 MiB on a DGX-1 (uuudown/Tartan)."""
LEAST_BYTES_PCIE = 10 << 20
"""The same over PCIe, which is slower: the size of the reference figures of two GPUs."""


def judge_collective(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """Bus bandwidth of one operation of NCCL over a number of GPUs."""
    unless(without_figure(box, row))
    wrong = row.more.get("wrong")
    if type(wrong) is int and wrong > 0:
        message = f"{label(box, row)}: {counted(wrong, 'wrong value')}"
        facts, remedy = (wrong, 0, "values", (evidence(row),)), remedy_of("measure.collective", "wrong")
        return judged(Fault.WRONG_DATA, message, *facts, fails=True, remedy=remedy)
    if row.number is None:
        return skip("not-recorded", f"{label(box, row)}: no figure", evidence(row))
    largest = _largest(row.more.get("sizes"))
    pair = pair_link(box, row)
    least = LEAST_BYTES_PCIE if pair is not None and not pair.nvlinks else LEAST_BYTES
    if largest is not None and largest < least:
        message = f"{label(box, row)}: at most {largest:.0f} bytes, too few for full bandwidth ({least >> 20} MiB)"
        return skip("no-reference", message, evidence(row))
    of_network = over_network(box, row)
    expected = None if of_network else against_expected(box, row)
    if expected is not None and expected.status is not Status.PASS:
        return expected
    far = None if of_network or expected is not None else _far_below_all(box, row)
    if (judgement := far or runs_differ(box, row) or _collapses(box, row) or expected) is not None:
        return replace(judgement, remedy=remedy_of("measure.collective", "several hosts")) if of_network else judgement
    message = f"{figure_text(box, row)}, no reference figure"
    if wrong == 0:
        message = f"{message}, no wrong values"
        return Judgement(Status.PASS, message, row.number, unit=row.unit, evidence=(evidence(row),))
    return skip("no-reference", message, evidence(row))


_OF_ALL = 10
"""Percent of what eight reach: two A100 of a board of four, which four of twelve NVLinks join, have 34."""


def _far_below_all(box: Box, row: Measurement) -> Judgement | None:
    """A group of GPUs, of a model whose boards join each two by NVLinks, far below what all of a board reach."""
    gpus = [gpu.name for one in items_of(row.more.get("devices")) if (gpu := device(box, str(one))) is not None]
    all_reduce = box.number("nvlink.all-reduce-8") if between_all(box, gpus, most=1) else None
    number = row.number or 0
    if all_reduce is None or number >= all_reduce.value * _OF_ALL / 100:
        return None
    share, of_eight = 100 * number / all_reduce.value, quantity(all_reduce.value, row.unit)
    message = f"{figure_text(box, row)}, {share:.0f} % of the {of_eight} of eight such GPUs: is it without NVLink?"
    return slow(row, message, all_reduce.value, status=Status.WARN)


def _collapses(box: Box, row: Measurement) -> Judgement | None:
    """A figure at the largest size far below one at a smaller size: bandwidth grows with the size, or stays."""
    sizes = row.more.get("sizes")
    measured = [each for each in items_of(sizes) if _is_row(each)]
    rates = [(rate, size) for size, _, _, rate in measured if size < (_largest(sizes) or 0.0)]
    if not rates:
        return None
    best, size = max(rates)
    if (row.number or 0) >= best * box.settings.limit("measure.derived") / 100:
        return None
    message = f"{figure_text(box, row)} at the largest size, {quantity(best, row.unit)} at {size:.0f} bytes"
    return slow(row, message, best, status=Status.WARN)


def _is_row(each: Json) -> TypeGuard[list[float]]:
    return isinstance(each, list) and len(each) == 4 and all(isinstance(one, int | float) for one in each)


def _largest(sizes: Json) -> float | None:
    """Bytes, of ``[[bytes, time_us, algbw, busbw], ..]``."""
    column = [row[0] for row in map(items_of, items_of(sizes)) if row]
    return max((float(size) for size in column if isinstance(size, int | float)), default=None)


def judge_ring(box: Box, figures: Figures, _: Measurement) -> Judgement:
    """All rings together, against what the NVLinks allow."""
    rows = figures.of_kinds("ring")
    if failures := [failure for row in rows if (failure := without_figure(box, row)) is not None]:
        return worst(failures)
    numbers = [row.number for row in rows if row.number is not None]
    facts = tuple(map(evidence, rows))
    total, unit = sum(numbers), rows[0].unit
    message = f"copies around {counted(len(rows), 'ring')} of GPUs: {quantity(total, unit)}"
    both_ways = all(row.more.get("directions") == 2 for row in rows)
    allowed = copies_gbs(box.topology, len(rows), both_ways)
    if allowed is None:
        return skip("no-reference", f"{message}; bandwidth of the NVLinks not known", *facts)
    low = total < allowed * box.settings.limit("measure.rings") / 100
    message = f"{message}, {100 * total / allowed:.0f} % of the {quantity(allowed, unit)} of the NVLinks"
    return judged(Fault.SLOW, message, round(total, 3), round(allowed, 3), unit, facts, warns=low)


def _runs(row: Measurement) -> list[Measurement]:
    """The runs over different GPUs that one row holds, each as a row of its own."""
    devices = row.more.get("devices")
    found = [row]
    for run in map(members_of, items_of(row.more.get("also"))):
        value = run.get("value")
        if isinstance(value, int | float) and run.get("devices") not in (None, devices):
            found.append(replace(row, value=value, runs=(), samples=(), more={**run}))
    return found


def _names(box: Box, row: Measurement, several: bool) -> str:
    """``GPU0 GPU4``, where there are runs of other GPUs too."""
    return " ".join(gpu_name(box, str(one)) for one in items_of(row.more.get("devices"))) if several else ""


def judge_collectives(box: Box) -> Judged:
    """Each operation and run, and the rings."""
    figures = given(measured_figures(box, ID))
    rows = figures.of_kinds("collective")
    for row in rows:
        for run in _runs(row):
            part = " ".join(filter(None, (row.a or "?", row.b, _names(box, run, len(_runs(row)) > 1))))
            yield replace(HOST, part=part), ruled(judge_collective, box, figures, run)
    rings = figures.of_kinds("ring")
    if rings:
        yield replace(HOST, part=paths.RINGS), ruled(judge_ring, box, figures, rings[0])
    if not rows and not rings:
        yield HOST, skip("not-recorded", "no traffic of all GPUs was measured")
