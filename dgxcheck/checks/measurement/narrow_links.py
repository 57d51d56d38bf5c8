"""Slow copies that a narrow or slow PCIe link explains: the link is reported, not the copies."""

from __future__ import annotations

from dgxcheck.bandwidth.links import LineRate, narrowest, physical, with_lanes
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Status, skip
from dgxcheck.checks.engine.under_load import under_load
from dgxcheck.checks.measurement.expectations import derived, expected_figure, figure_text, has_reference
from dgxcheck.checks.measurement.lookup import device, link_between
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import replace
from dgxcheck.topology.paths import Hop, hops_above, hops_between
from dgxcheck.topology.rates import pcie_gbs


def unless_link_explains(box: Box, row: Measurement, judgement: Judgement | None) -> Judgement | None:
    """The judgement, or a skip where the copy is as fast as a link of fewer lanes or a lower generation allows."""
    expected, value = expected_figure(box, row), row.number
    if judgement is None or judgement.status is Status.PASS or expected is None or value is None:
        return judgement
    line = _lanes(box)
    slowest = narrowest((hop for hop in _hops(box, row) if not isinstance(line(hop), Missing)), line)
    if slowest is None or isinstance(slowest, Missing):
        return judgement
    hop, gbs = slowest
    reduced = _reduced(box, row, expected.value, gbs) if has_reference(box, row) else _derived(box, row, line)
    if reduced is None or reduced >= expected.value:
        return judgement
    if value < reduced * expected.warn_below / 100:
        is_far = has_reference(box, row) or value < reduced * expected.far_below / 100
        return judgement if is_far else replace(judgement, status=Status.WARN)
    message = f"{figure_text(box, row)}, limited by link {hop}, which runs at gen{hop.max_gen} x{hop.width} at most"
    return skip("dependency-failed", f"see pcie.width, pcie.path or pcie.generation: {message}", *judgement.evidence)


def _hops(box: Box, row: Measurement) -> tuple[Hop, ...]:
    """The PCIe links that the copy crosses; none over NVLink."""
    one, other, link = device(box, row.a), device(box, row.b), link_between(box, row.a, row.b)
    functions = box.topology.functions
    if one is None or isinstance(one.path, Missing):
        return ()
    if not row.b:
        hops: tuple[Hop, ...] | Missing = hops_above(one.path, functions)
    elif other is None or link is None or link.nvlinks:
        return ()
    else:
        hops = hops_between(one, other, functions)
    return () if isinstance(hops, Missing) else physical(hops)


def _lanes(box: Box) -> LineRate:
    """GB/s with the lanes that a link has, under load where that was read, at the generation that both ends support."""

    def gbs(hop: Hop) -> float | Missing:
        loaded = under_load(box, hop.device, "link_width")
        width = hop.width if loaded is None or isinstance(hop.width, Missing) else min(hop.width, loaded[0])
        return with_lanes(hop, width)

    return gbs


def _derived(box: Box, row: Measurement, line: LineRate) -> float | None:
    figure = derived(box, row, line)
    return None if figure is None else figure.value


def _reduced(box: Box, row: Measurement, expected: float, gbs: float) -> float | None:
    """The reference machine's figure with a link that has ``gbs`` of the line rate that its links have."""
    numbers = [box.choice.number(key) for key in ("pcie.link_gen", "pcie.link_width")] if box.choice else []
    known = [int(number.value) for number in numbers if number is not None]
    if len(known) == 2:
        full = pcie_gbs(*known)
    else:
        slowest = narrowest(hop for hop in _hops(box, row) if not isinstance(hop.max_gbs, Missing))
        full = gbs if slowest is None or isinstance(slowest, Missing) else slowest[1]
    return None if isinstance(full, Missing) else expected * gbs / full
