"""Copies between the host's memory and each GPU, and within each GPU's own memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, skip
from dgxcheck.checks.measurement.comparisons import again, below_class, gpus_alike, runs, slower_than, warned
from dgxcheck.checks.measurement.expectations import amount, held
from dgxcheck.checks.measurement.lookup import ALONE, Figures, asked, cut_short, evidence, figures, in_order, subject
from dgxcheck.checks.measurement.narrow_links import unless_narrow
from dgxcheck.checks.measurement.untaken import BAD, once, untaken, worst
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.record import replace

Judged = Iterator[tuple[Subject, Judgement]]
Rule = Callable[[Box, Figures, Measurement], Judgement]
COPIES = {"host-to-device": "device-to-host", "device-to-host": "host-to-device"}
"""Pinned copies, each with its other direction."""


def copied(box: Box, found: Figures, row: Measurement) -> Judgement:
    """One direction of pinned host copies."""
    if (nothing := _without(box, row)) is not None:
        return nothing
    value = row.number or 0
    limit = box.settings.limit("measure.pinned")
    back = found.of(COPIES[row.kind], row.a)
    by_reference = unless_narrow(box, row, held(box, row, row.kind))
    said = None if by_reference is None or by_reference.status is Status.PASS else by_reference
    said = said or runs(box, row)
    if said is None and value < limit:
        what = f"{row.kind} {amount(value)} {row.unit} from pinned memory: less than any sound slot gives"
        said = warned(row, what, limit)
    said = said or slower_than(box, row, back, "measure.directions", f"{COPIES[row.kind]}")
    said = said or below_class(box, row, gpus_alike(box, found, row), "measure.directions", "GPUs like it have")
    return with_retries(row, said or by_reference or _alone(row))


def copied_within(box: Box, found: Figures, row: Measurement) -> Judgement:
    """Copies within a GPU's memory, by copy engine or by kernel."""
    if (nothing := _without(box, row)) is not None:
        return nothing
    alike = gpus_alike(box, found, row)
    by_reference = held(box, row, row.kind)
    said = None if by_reference is None or by_reference.status is Status.PASS else by_reference
    said = said or runs(box, row) or below_class(box, row, alike, "measure.symmetry", "GPUs like it have")
    if said is None and by_reference is None and len(alike) < 2:
        return skip("no-reference", f"{_alone(row).message}, and nothing to compare it with", evidence(row))
    return with_retries(row, said or by_reference or _alone(row))


def _without(box: Box, row: Measurement) -> Judgement | None:
    if (nothing := untaken(box, row)) is not None:
        return nothing
    return None if row.number is not None else skip("not-recorded", f"{row.kind} has no figure", evidence(row))


def _alone(row: Measurement) -> Judgement:
    """A figure with nothing against it."""
    message = f"{row.kind} {amount(row.number or 0)} {row.unit}"
    return Judgement(Status.PASS, message, row.number, unit=row.unit, evidence=(evidence(row),))


def with_retries(row: Measurement, said: Judgement) -> Judgement:
    """A bad judgement says how often the figure was measured."""
    return replace(said, message=f"{said.message}{again(row)}") if said.status in BAD else said


def per_gpu(box: Box, check: str, rules: dict[str, Rule], nothing: str) -> Judged:
    """One judgement for each GPU that has one of the kinds: the worst of them, with all figures where all is well."""
    found = figures(box, check)
    if isinstance(found, Judgement):
        yield HOST, found
        return
    stopped = cut_short(found, check)
    if stopped is not None:
        yield HOST, stopped
    rows = [row for row in found.kinds(*rules) if asked(box, row.a)]
    for id in in_order(box, (row.a for row in rows)):
        said = [rules[kind](box, found, row) for kind in rules for row in rows if (row.kind, row.a) == (kind, id)]
        yield subject(box, id), once(found, check, together(said), id)
    if not rows and stopped is None:
        yield HOST, skip("not-recorded", nothing)


def together(said: list[Judgement]) -> Judgement:
    """The worst of several figures of one subject; of those that are equally bad all are told."""
    first = worst(said)
    if first.status is Status.PASS:
        first = next((each for each in said if each.reason == "dependency-failed"), first)
    same = [each for each in said if each.status is first.status and (first.status is not Status.SKIP)]
    if len(same) < 2:
        return first
    lowest = min(same, key=_share)
    message = "; ".join(dict.fromkeys(each.message for each in same))
    return replace(lowest, message=message, evidence=tuple(fact for each in same for fact in each.evidence))


def _share(said: Judgement) -> float:
    """How much of what is expected is there; a figure of which nothing is expected stands behind the others."""
    measured, expected = said.measured, said.expected
    if not isinstance(measured, int | float) or not isinstance(expected, int | float) or not expected:
        return inf
    return measured / expected


def _host(box: Box) -> Judged:
    id = "measure.host-bandwidth"
    rules: dict[str, Rule] = {"under-load": _loaded, **dict.fromkeys(COPIES, copied)}
    yield from per_gpu(box, id, rules, "no copy between host and GPU was measured")


def _loaded(box: Box, found: Figures, row: Measurement) -> Judgement:
    """What NVML said meanwhile is for pcie.width and pcie.generation; that the load broke down is told here."""
    nothing = untaken(box, row)
    return skip("not-in-level", "see pcie.width and pcie.generation") if nothing is None else nothing


def _memory(box: Box) -> Judged:
    id = "measure.memory-bandwidth"
    yield from per_gpu(box, id, dict.fromkeys(ALONE[id], copied_within), "no copy within a GPU was measured")


CHECKS = (
    Check(
        id="measure.host-bandwidth",
        rule="Pinned copies from and to each GPU: warns below {measure.warn} and fails below {measure.fail} of the"
        " profile's figure; without one warns below {measure.derived} of what the PCIe path gives. Warns as well where"
        " runs of one GPU differ by more than {measure.runs}, where one direction or one GPU is slower than the other,"
        " or than GPUs like it, by more than {measure.directions}, and below {measure.pinned}. What a narrow or slow"
        " PCIe link explains is told there. Both directions at once are not judged.",
        source="the profile's pcie.host-to-device and pcie.device-to-host; cuMemcpyHtoDAsync, cuMemcpyDtoHAsync",
        remedy="look at the GPU's PCIe width and generation under load; run with memory and process on its NUMA node;"
        " then reseat the GPU, its tray or riser",
        judge=_host,
    ),
    Check(
        id="measure.memory-bandwidth",
        rule="Copies within each GPU's memory, read and write counted: warns below {measure.warn} and fails below"
        " {measure.fail} of what its model gives; warns where it is slower by more than {measure.symmetry} than GPUs"
        " like it in this box, and where runs differ by more than {measure.runs}.",
        source="the board's device_copy; cuMemcpyDtoDAsync",
        remedy="look at memory clock, ECC mode and throttle reasons under load; then reset the GPU, and have the"
        " vendor's field diagnostic run",
        judge=_memory,
    ),
)
