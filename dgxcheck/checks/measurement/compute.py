"""Do GPUs of one model calculate equally fast, and if not, what holds the slow one's clocks down?"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, skip
from dgxcheck.checks.gpu.clocks import HELD_BACK, slowdown
from dgxcheck.checks.measurement.comparisons import FEWEST, gpus_alike
from dgxcheck.checks.measurement.expectations import amount
from dgxcheck.checks.measurement.host_copies import per_gpu
from dgxcheck.checks.measurement.lookup import Figures, evidence
from dgxcheck.checks.measurement.untaken import untaken
from dgxcheck.facts.measurement import Measurement

Judged = Iterator[tuple[Subject, Judgement]]
ID = "measure.compute"
POWER_CAP = 0x4
"""``nvmlClocksEventReasonSwPowerCap``: a load of multiplications alone draws all that a GPU may."""


def calculated(box: Box, found: Figures, row: Measurement) -> Judgement:
    """One GPU's multiplications and additions against those of its siblings."""
    if (nothing := untaken(box, row)) is not None:
        return nothing
    if row.number is None:
        return skip("not-recorded", "no figure", evidence(row))
    alike = [each for each in gpus_alike(box, found, row) if each.number and each.how == row.how]
    told = f"{amount(row.number)} {row.unit}{_at(row)}"
    if len(alike) < FEWEST:
        return skip("no-reference", f"{told}, and no GPU of its model to compare it with", evidence(row))
    middle = median(each.number or 0 for each in alike)
    keep = 1 - box.settings.limit("measure.compute") / 100
    status = Status.WARN if row.number < middle * keep else Status.PASS
    message = f"{told}, GPUs like it have {amount(middle)}"
    if status is Status.WARN:
        message += _why(found, row, alike, keep)
    return Judgement(status, message, row.number, round(middle, 3), row.unit, (evidence(row),))


def _why(found: Figures, row: Measurement, alike: list[Measurement], keep: float) -> str:
    """Slower clocks and what holds them down, or none of that."""
    own, clocks = _clock(row), [clock for each in alike if (clock := _clock(each)) is not None]
    if own is None or len(clocks) != len(alike):
        return ""
    per_mhz = [(each.number or 0) / (_clock(each) or 1) for each in alike]
    if (row.number or 0) / own < median(per_mhz) * keep:
        return " at like clocks"
    return f" at {median(clocks):g} MHz{_held(found, row.a)}"


def _held(found: Figures, gpu: str) -> str:
    load = found.of("under-load", gpu)
    mask = load.more.get("reasons") if load is not None else None
    if not isinstance(mask, int) or isinstance(mask, bool):
        return ""
    bit = slowdown(mask)
    if bit:
        return f"; its clocks are held down: {HELD_BACK[bit]}"
    return "; it is at its power limit" if mask & POWER_CAP else ""


def _clock(row: Measurement) -> float | None:
    clock = row.more.get("clock_mhz")
    known = isinstance(clock, int | float) and not isinstance(clock, bool) and 0 < clock < 1e6
    return float(clock) if known and isinstance(clock, int | float) else None


def _at(row: Measurement) -> str:
    clock = _clock(row)
    return "" if clock is None else f" at {clock:g} MHz"


def _compute(box: Box) -> Judged:
    yield from per_gpu(box, ID, {"compute": calculated}, "no GPU was made to calculate")


CHECKS = (
    Check(
        id=ID,
        rule="Warns where a GPU multiplies and adds more slowly than the median of the GPUs of its model in this box,"
        " by more than {measure.compute}, and says whether lower clocks explain it and what holds those down. No"
        " vendor's figure is used.",
        source="a kernel of fused multiply-adds; nvmlDeviceGetClockInfo and the clocks' event reasons meanwhile",
        remedy="look at power limit, application clocks, temperature and power supply of that GPU; then swap it with"
        " its neighbour to see whether the fault stays with the slot",
        judge=_compute,
    ),
)
