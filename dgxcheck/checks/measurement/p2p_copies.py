"""Copies between two GPUs: their bandwidth, and by the latency of small ones, whether peer access is really in use."""

from __future__ import annotations

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import remedy_of, ruled
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, first_of, given, judged, skip, unless
from dgxcheck.checks.measurement.comparisons import (
    above_pairs,
    below_class,
    below_pairs,
    is_slower,
    runs_differ,
    slower_than,
    staged_in_a_socket,
    unless_link_explains,
)
from dgxcheck.checks.measurement.expectations import (
    against_expected,
    amount,
    figure_text,
    has_reference,
    plain_pass,
    quantity,
    slow,
)
from dgxcheck.checks.measurement.failures import measured_figures, no_figure, unless_reported, without_figure, worst
from dgxcheck.checks.measurement.host_copies import combined
from dgxcheck.checks.measurement.lookup import (
    P2P,
    PAIRS,
    STAGED,
    Figures,
    evidence,
    gpu_name,
    link_between,
    pair_subject,
    pairs,
)
from dgxcheck.facts.bdf import IdPair
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.record import replace

FEWEST = 3
"""Pairs at least that must all be slower with P2P on for it to be one fault, of the host."""
BANDWIDTH = "measure.p2p-bandwidth"


def judge_p2p_copy(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """One figure of a pair: one direction or both at once, P2P on or off."""
    p2p_on = row.kind in P2P
    if p2p_on and figures.access_refused(row.a, row.b):
        return skip("not-supported", "the driver refuses peer access between the two", evidence(row))
    unless(no_figure(box, row))
    expected = against_expected(box, row)
    expected = unless_link_explains(box, row, expected) if p2p_on else expected
    low = None if expected is None or expected.status is Status.PASS else expected
    bad = low if has_reference(box, row) else None
    if p2p_on:
        bad = bad or slower_than(box, row, _staged(figures, row), "measure.symmetry", "with P2P off")
    bad = bad or low or runs_differ(box, row)
    if row.kind == "p2p":
        other_way = figures.get("p2p", row.b, row.a)
        bad = bad or slower_than(box, row, other_way, "measure.symmetry", "the other way")
    if p2p_on:
        bad = bad or below_pairs(box, figures, row)
    else:
        near = staged_in_a_socket(box, figures, row)
        bad = bad or below_class(box, row, near, "measure.directions", "of pairs within one NUMA node")
    return bad or expected or plain_pass(box, row)


def _staged(figures: Figures, row: Measurement) -> Measurement | None:
    """The same copy with P2P off, through host memory."""
    off = STAGED[P2P.index(row.kind)]
    return figures.get(off, row.a, row.b) or (figures.get(off, row.b, row.a) if row.kind == "p2p-both" else None)


def judge_bandwidth(box: Box) -> Judged:
    """Each pair, both ways; of the host where all are slower with P2P on."""
    figures = given(measured_figures(box, BANDWIDTH))
    tried = pairs(box, figures, PAIRS[BANDWIDTH])
    slower = _slower_with_p2p(box, figures, tried)
    for ends in tried:
        judgement = _judge_pair(box, figures, *ends)
        if slower and judgement.status is Status.WARN:
            judgement = skip("dependency-failed", "see the finding of the host: all pairs are slower with P2P on")
        yield pair_subject(box, *ends), judgement
    if slower:
        yield HOST, _all_slower(box, slower)
    if not tried:
        yield HOST, skip("not-recorded", "no copies between GPUs were measured")


def _judge_pair(box: Box, figures: Figures, a: str, b: str) -> Judgement:
    rows = [row for kind in PAIRS[BANDWIDTH] for row in figures.each_way(kind, a, b)]
    judged = [(row, ruled(judge_p2p_copy, box, figures, row)) for row in rows]
    if worst([judgement for _, judgement in judged]).status is not Status.PASS:
        return unless_reported(figures, BANDWIDTH, combined(box, judged), a, b)
    if withheld := [each for row, each in judged if row.kind in P2P and each.reason not in ("", "not-supported")]:
        return withheld[0]
    good = [(row, each) for row, each in judged if each.status is Status.PASS]
    slowest = min((each for row, each in good if row.kind == good[0][0].kind), key=lambda each: each.measured or 0)
    return replace(slowest, message=_summary([row for row, _ in good], a, b))


def _summary(rows: list[Measurement], a: str, b: str) -> str:
    """``P2P on: 18.41 GB/s, back 18.39, both ways 36.8; P2P off: 10.4 GB/s, back 10.4``"""
    parts = []
    for kinds, mode in ((P2P, "P2P on"), (STAGED, "P2P off")):
        amounts = {(row.kind, row.a): amount(row.number or 0) for row in rows}
        both = next((text for (kind, _), text in amounts.items() if kind == kinds[1]), None)
        columns = ((amounts.get((kinds[0], a)), ""), (amounts.get((kinds[0], b)), "back "), (both, "both ways "))
        if texts := [f"{way}{text}" for text, way in columns if text is not None]:
            parts.append(f"{mode}: {', '.join([f'{texts[0]} {rows[0].unit}', *texts[1:]])}")
    return "; ".join(parts)


def _slower_with_p2p(box: Box, figures: Figures, tried: list[IdPair]) -> list[tuple[Measurement, Measurement]]:
    """The slowest copy of each pair that is slower with P2P on, and the same with P2P off.

    Empty unless it is all of the pairs that were measured with P2P on and off, and at least ``FEWEST``.
    """
    slower: list[tuple[Measurement, Measurement]] = []
    compared = 0
    for a, b in tried:
        rows = [row for row in figures.each_way("p2p", a, b) if row.number is not None]
        both = [(row, off) for row in rows if (off := _staged(figures, row)) is not None and off.number is not None]
        if not both or figures.access_refused(a, b):
            continue
        compared += 1
        low = [pair for pair in both if is_slower(box, *pair, "measure.symmetry")]
        by_reference = (against_expected(box, row) for row, _ in both if has_reference(box, row))
        if low and all(each is None or each.status is Status.PASS for each in by_reference):
            slower.append(min(low, key=lambda pair: pair[0].number or 0))
    return slower if len(slower) >= FEWEST and len(slower) == compared else []


def _all_slower(box: Box, slower: list[tuple[Measurement, Measurement]]) -> Judgement:
    row, off = min(slower, key=lambda pair: pair[0].number or 0)
    names = first_of([f"{gpu_name(box, row.a)}-{gpu_name(box, row.b)}" for row, _ in slower])
    slowest = f"{figure_text(box, row)}, with P2P off {quantity(off.number or 0, off.unit)}"
    message = f"all {len(slower)} pairs are slower with P2P on than through host memory; slowest {slowest} ({names})"
    found = slow(row, message, off.number or 0, off, status=Status.WARN)
    links = [link_between(box, each.a, each.b) for each, _ in slower]
    if any(link is not None and link.nvlinks for link in links):
        return found
    by_pcie = all(link is not None and link.nvlinks == 0 for link in links)
    return replace(found, remedy=remedy_of(BANDWIDTH, "all over PCIe" if by_pcie else "all"))


LATENCY = "measure.p2p-latency"


def judge_latency(box: Box, figures: Figures, row: Measurement) -> Judgement:
    """A small copy with P2P on (``latency``), against the same with P2P off."""
    access = figures.get("access", row.a, row.b)
    if access is not None and access.value is False:
        return skip("not-supported", "the driver refuses peer access between the two", evidence(row))
    unless(without_figure(box, row))
    unless(above_pairs(box, figures, row))
    off = figures.get("latency-off", row.a, row.b)
    if access is None or access.value is not True:
        return skip("not-recorded", "not recorded whether P2P was offered and enabled", evidence(row))
    if row.number is None or off is None or not off.number or row.number <= 0:
        return skip("not-recorded", "not measured with both P2P on and P2P off", evidence(row))
    if (off.tool, off.how, _method(off)) != (row.tool, row.how, _method(row)):
        return skip("not-recorded", "P2P on and P2P off were measured in different ways", evidence(row), evidence(off))
    facts = (evidence(row), evidence(off))
    limit = off.number * box.settings.limit("measure.p2p-latency") / 100
    message = f"{figure_text(box, row)}, with P2P off {quantity(off.number, off.unit)}"
    unused = row.number > limit
    message += ": peer access is not in use" if unused else ""
    return judged(Fault.SLOW, message, row.number, round(limit, 3), row.unit, facts, warns=unused)


def _method(row: Measurement) -> str:
    """Engine and size, as far as both modes have them in common."""
    return row.method.partition(",")[0]


def judge_latencies(box: Box) -> Judged:
    """Each pair, both ways."""
    figures = given(measured_figures(box, LATENCY))
    tried = pairs(box, figures, ("latency",))
    for a, b in tried:
        rows = figures.each_way("latency", a, b)
        judgement = combined(box, [(row, ruled(judge_latency, box, figures, row)) for row in rows])
        link = link_between(box, a, b)
        if judgement.status is Status.WARN and link is not None and link.nvlinks:
            judgement = replace(judgement, remedy=remedy_of("measure.p2p-latency", "over NVLink"))
        yield pair_subject(box, a, b), unless_reported(figures, LATENCY, judgement, a, b)
    if not tried:
        yield HOST, skip("not-recorded", "no latency between GPUs was measured")
