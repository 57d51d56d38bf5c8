"""Slow copies that a narrow or slow PCIe link explains: the link is reported, not the copies."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Status, skip
from dgxcheck.checks.engine.under_load import under_load
from dgxcheck.checks.measurement.expectations import expected_figure, figure_text
from dgxcheck.checks.measurement.lookup import device, link_between
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.paths import Hop, hops_above, hops_between
from dgxcheck.topology.rates import pcie_gbs


def unless_link_explains(box: Box, row: Measurement, judgement: Judgement | None) -> Judgement | None:
    """The judgement, or a skip where the copy is as fast as a link of fewer lanes or a lower generation allows."""
    expected, value = expected_figure(box, row), row.number
    if judgement is None or judgement.status is Status.PASS or expected is None or value is None:
        return judgement
    rates = {hop: rate for hop in _hops(box, row) if not isinstance(rate := _trained_gbs(box, hop), Missing)}
    if not rates:
        return judgement
    hop = min(rates, key=lambda hop: rates[hop])
    full = _full_gbs(box, [*rates], reference=bool(expected.fail_below))
    if full is None or rates[hop] >= full:
        return judgement
    if value < expected.value * rates[hop] / full * expected.warn_below / 100:
        return judgement
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
    return () if isinstance(hops, Missing) else tuple(hop for hop in hops if not hop.skip_reason)


def _trained_gbs(box: Box, hop: Hop) -> float | Missing:
    """GB/s with the lanes that it has, under load where that was read, at the generation that both ends support."""
    loaded = under_load(box, hop.device, "link_width")
    width = hop.width if loaded is None or isinstance(hop.width, Missing) else min(hop.width, loaded[0])
    return pcie_gbs(hop.max_gen, width)


def _full_gbs(box: Box, hops: list[Hop], reference: bool) -> float | None:
    """GB/s of the link that the expectation rests on: the profile's, else what both ends support."""
    numbers = [box.choice.number(key) for key in ("pcie.link_gen", "pcie.link_width")] if box.choice else []
    if reference and len(numbers) == 2 and numbers[0] is not None and numbers[1] is not None:
        rate = pcie_gbs(int(numbers[0].value), int(numbers[1].value))
        return None if isinstance(rate, Missing) else rate
    rates = [rate for hop in hops if not isinstance(rate := hop.max_gbs, Missing)]
    return min(rates, default=None)
