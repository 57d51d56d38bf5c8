"""How fast data go from GPU to GPU, with peer access on and off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judgement, Status, Subject, skip
from dgxcheck.checks.measurement.comparisons import below_class, denied, pairs_alike, runs, slower_than
from dgxcheck.checks.measurement.expectations import amount, by_reference, held
from dgxcheck.checks.measurement.host_copies import together, with_retries
from dgxcheck.checks.measurement.lookup import P2P, PAIRS, STAGED, Figures, evidence, figures, name, pair, pairs, way
from dgxcheck.checks.measurement.narrow_links import unless_narrow
from dgxcheck.checks.measurement.untaken import once, untaken, worst
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.record import replace

Judged = Iterator[tuple[Subject, Judgement]]
Pair = tuple[str, str]
FEWEST = 3
"""So many pairs at least that are all slower with P2P on are one fault, of the host."""
ID = "measure.p2p-bandwidth"


def moved(box: Box, found: Figures, row: Measurement) -> Judgement:
    """One figure of a pair: one direction or both at once, P2P on or off."""
    if row.kind in P2P and denied(found, row.a, row.b):
        return skip("not-supported", "the driver offers these two no access to each other", evidence(row))
    if (nothing := untaken(box, row)) is not None:
        return nothing
    if row.number is None:
        return skip("not-recorded", f"{row.kind} has no figure", evidence(row))
    what = f"{way(box, row)} {row.kind}"
    expected = unless_narrow(box, row, held(box, row, what)) if row.kind in P2P else held(box, row, what)
    low = None if expected is None or expected.status is Status.PASS else expected
    said = low if by_reference(box, row) else None
    if row.kind in P2P:
        said = said or staged_faster(box, found, row)
    said = said or low or runs(box, row)
    if row.kind == "p2p":
        back = found.of("p2p", row.b, row.a)
        said = said or slower_than(box, row, back, "measure.symmetry", "the way back")
    said = said or below_class(box, row, pairs_alike(found, row), "measure.symmetry", "pairs joined alike have")
    fine = Judgement(Status.PASS, f"{what} {amount(row.number)} {row.unit}", row.number, unit=row.unit,
                     evidence=(evidence(row),))  # fmt: skip
    return with_retries(row, said or expected or fine)


def staged_faster(box: Box, found: Figures, row: Measurement) -> Judgement | None:
    """Is the same pair faster with P2P off, through the host?"""
    off = STAGED[P2P.index(row.kind)]
    staged = found.of(off, row.a, row.b) or (found.of(off, row.b, row.a) if row.kind == "p2p-both" else None)
    return slower_than(box, row, staged, "measure.symmetry", "through the host with P2P off it has")


def _bandwidth(box: Box) -> Judged:
    found = figures(box, ID)
    if isinstance(found, Judgement):
        yield HOST, found
        return
    tried = pairs(box, found, PAIRS[ID])
    said = {ends: _pair(box, found, *ends) for ends in tried}
    slow = _all_slower(box, found, tried)
    for ends, each in said.items():
        told = slow and each.status is Status.WARN
        yield pair(box, *ends), skip("dependency-failed", "told at the host") if told else each
    if slow:
        yield HOST, _of_all(box, slow)
    if not tried:
        yield HOST, skip("not-recorded", "no copy from GPU to GPU was measured")


def _pair(box: Box, found: Figures, a: str, b: str) -> Judgement:
    rows = [row for kind in PAIRS[ID] for row in found.both(kind, a, b)]
    judged = [(row, moved(box, found, row)) for row in rows]
    said = [each for _, each in judged]
    if worst(said).status is not Status.PASS:
        return once(found, ID, together(said), a, b)
    withheld = [each for row, each in judged if row.kind in P2P and each.reason not in ("", "not-supported")]
    if withheld:
        return withheld[0]
    good = [(row, each) for row, each in judged if each.status is Status.PASS]
    slowest = min((each for row, each in good if row.kind == good[0][0].kind), key=lambda each: each.measured or 0)
    return replace(slowest, message=_summary([row for row, _ in good], a, b))


def _summary(rows: list[Measurement], a: str, b: str) -> str:
    """``18.41 GB/s, back 18.39, both ways 36.8; with P2P off 10.4, back 10.4``"""
    told = []
    for kinds, before in ((P2P, ""), (STAGED, "with P2P off ")):
        figures = {(row.kind, row.a): amount(row.number or 0) for row in rows}
        both = next((text for (kind, _), text in figures.items() if kind == kinds[1]), None)
        known = ((figures.get((kinds[0], a)), ""), (figures.get((kinds[0], b)), "back "), (both, "both ways "))
        parts = [f"{words}{text}" for text, words in known if text is not None]
        told += [before + ", ".join(parts)] if parts else []
    return f"{'; '.join(told)} {rows[0].unit}"


def _all_slower(box: Box, found: Figures, tried: list[Pair]) -> Mapping[Pair, Judgement]:
    """Of pairs that were measured both ways, those that are slower with P2P on; empty unless that is all of them."""
    slower: dict[Pair, Judgement] = {}
    compared = 0
    for a, b in tried:
        rows = [
            row
            for row in found.both("p2p", a, b)
            if row.number is not None and found.number("p2p-off", row.a, row.b) is not None
        ]
        if not rows or denied(found, a, b):
            continue
        compared += 1
        said = [each for row in rows if (each := staged_faster(box, found, row)) is not None]
        failed = [row for row in rows if by_reference(box, row) and _is_low(box, row)]
        if said and not failed:
            slower[a, b] = min(said, key=lambda each: each.measured or 0)
    return slower if len(slower) >= FEWEST and len(slower) == compared else {}


def _is_low(box: Box, row: Measurement) -> bool:
    said = held(box, row, "")
    return said is not None and said.status is not Status.PASS


def _of_all(box: Box, slower: Mapping[Pair, Judgement]) -> Judgement:
    lowest = min(slower.values(), key=lambda each: each.measured or 0)
    names = ", ".join(f"{name(box, a)}-{name(box, b)}" for a, b in slower)
    message = f"all pairs are slower with P2P on than through the host: {names}; {lowest.message}"
    return replace(lowest, message=message)


CHECKS = (
    Check(
        id=ID,
        rule="Copies between two GPUs, each way, both at once, and with P2P off: warns below {measure.warn} and fails"
        " below {measure.fail} of the profile's figure for what joins them; without one warns below {measure.warn} of"
        " what their NVLinks give, below {measure.derived} of what the PCIe path gives. Warns as well where P2P on is"
        " slower than off, where one direction is slower than the other, or the pair than the median of those that the"
        " same links join, by more than {measure.symmetry}, and where runs differ by more than {measure.runs}. Where"
        " all pairs are slower with P2P on it is told once. What a narrow PCIe link explains is told there."
        " Pairs that the driver offers no access are not judged with P2P on, nor is a pair whose data arrive wrong.",
        source="the profile's nvlink.p2p and pcie.p2p figures; cuMemcpyDtoDAsync and cuMemcpyPeerAsync",
        remedy="for NVLink look for links that are down, for replays and Xid 74, and reseat both GPUs; for PCIe look at"
        " the path's width, and turn off ACS redirection and IOMMU translation",
        judge=_bandwidth,
    ),
)
