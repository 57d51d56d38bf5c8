"""Traffic of all GPUs at once: rings of copies, and what NCCL's own tests gave."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, skip
from dgxcheck.checks.measurement.comparisons import runs
from dgxcheck.checks.measurement.expectations import amount, held
from dgxcheck.checks.measurement.host_copies import with_retries
from dgxcheck.checks.measurement.lookup import Figures, evidence, figures
from dgxcheck.checks.measurement.untaken import untaken
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.facts.record import replace
from dgxcheck.topology.expected import NVLINK_SHARE
from dgxcheck.topology.graph import nvlink_generation, nvlink_graph
from dgxcheck.topology.rings import collective_gbs, search

Judged = Iterator[tuple[Subject, Judgement]]
ID = "measure.collective"
LEAST_BYTES = 32 << 20
"""Below this NCCL does not reach its bandwidth: 90 % at 32 MiB on a DGX-1 (uuudown/Tartan)."""


def reduced(box: Box, _: Figures, row: Measurement) -> Judgement:
    """Bus bandwidth of one operation of NCCL over so many GPUs."""
    if (nothing := untaken(box, row)) is not None:
        return nothing
    wrong = row.more.get("wrong")
    what = f"{row.a} over {row.b} GPUs"
    if isinstance(wrong, int) and not isinstance(wrong, bool) and wrong > 0:
        message = f"{what}: {wrong} values are wrong"
        return Judgement(Status.FAIL, message, wrong, 0, "values", (evidence(row),))
    if row.number is None:
        return skip("not-recorded", f"{what} has no figure", evidence(row))
    largest = _largest(row.more.get("sizes"))
    if largest is not None and largest < LEAST_BYTES:
        return skip("no-reference", f"{what}: {largest} bytes at most, too few to reach its bandwidth", evidence(row))
    expected = held(box, row, what)
    said = None if expected is None or expected.status is Status.PASS else expected
    said = said or runs(box, row) or expected
    if said is None:
        told = f"{what} {amount(row.number)} {row.unit}; no figure of a good box is known"
        if wrong == 0:
            return Judgement(Status.PASS, f"{told}, no value is wrong", row.number, unit=row.unit,
                             evidence=(evidence(row),))  # fmt: skip
        return skip("no-reference", told, evidence(row))
    return with_retries(row, said)


def _largest(sizes: Json) -> float | None:
    """Bytes, of ``[[bytes, time_us, algbw, busbw], ..]``."""
    found = [row[0] for row in sizes if isinstance(row, list) and row] if isinstance(sizes, list) else []
    return max((float(each) for each in found if isinstance(each, int | float)), default=None)


def ringed(box: Box, found: Figures, _: Measurement) -> Judgement:
    """All rings together, against those that the NVLinks allow and the profile's all-reduce."""
    rows = found.kinds("ring")
    said = [each for row in rows if (each := untaken(box, row)) is not None]
    if said:
        return next((each for each in said if each.status is not Status.SKIP), said[0])
    numbers = [row.number for row in rows if row.number is not None]
    seen = tuple(map(evidence, rows))
    if len(numbers) != len(rows):
        return skip("not-recorded", "a ring has no figure", *seen)
    total = sum(numbers)
    what = f"copies around {len(rows)} ring{'s' if len(rows) > 1 else ''} of GPUs: {amount(total)} {rows[0].unit}"
    due = _allowed(box, rows)
    if due is None:
        return skip("no-reference", f"{what}; how much the links allow is not known", *seen)
    low = total < due * box.settings.limit("measure.rings") / 100
    message = f"{what}, {100 * total / due:.0f} % of the {amount(due)} that the NVLinks allow"
    status = Status.WARN if low else Status.PASS
    return Judgement(status, message, round(total, 3), round(due, 3), rows[0].unit, seen)


def _allowed(box: Box, rows: list[Measurement]) -> float | None:
    """Rings x directions x rate of a link x the share that copies reach.

    Through NVSwitches one order of the GPUs has all the links; elsewhere each ring has its own.
    """
    graph, generation = nvlink_graph(box.topology), nvlink_generation(box.topology)
    if isinstance(graph, Missing) or isinstance(generation, Missing) or generation not in NVLINK_SHARE:
        return None
    rings = search(graph)
    most = collective_gbs(rings, generation)
    if isinstance(most, Missing) or isinstance(rings.count, Missing) or not most:
        return None
    share = 1.0 if rings.how == "switched" else min(1.0, len(rows) / rings.count)
    share *= 1.0 if all(row.more.get("directions") == 2 for row in rows) else 0.5
    return most * share * NVLINK_SHARE[generation][0]


def _collective(box: Box) -> Judged:
    found = figures(box, ID)
    if isinstance(found, Judgement):
        yield HOST, found
        return
    rows = found.kinds("collective")
    for row in rows:
        yield replace(HOST, part=f"{row.a} {row.b}".strip()), reduced(box, found, row)
    rings = found.kinds("ring")
    if rings:
        yield replace(HOST, part="rings"), ringed(box, found, rings[0])
    if not rows and not rings:
        yield HOST, skip("not-recorded", "no traffic of all GPUs was measured")


CHECKS = (
    Check(
        id=ID,
        rule="Bus bandwidth of NCCL's operations: warns below {measure.warn} and fails below {measure.fail} of the"
        " profile's figure for the operation and number of GPUs; fails where values are wrong. Copies around the rings"
        " of NVLinks: warns below {measure.rings} of what the links allow. Runs of NCCL with less than 32 MiB are not"
        " judged.",
        source="the profile's nvlink.all-reduce and the like; rings of the NVLink graph x 2 directions x rate of each",
        remedy="look at the pairs with less bandwidth than others; for NCCL at NCCL_DEBUG=INFO: which rings and"
        " transports it chose, and at ACS and IOMMU",
        judge=_collective,
    ),
)
