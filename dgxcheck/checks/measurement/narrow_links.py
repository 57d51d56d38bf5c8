"""Slow copies that a narrow or slow PCIe link explains: the link is told, and what follows from it is not."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Status, skip
from dgxcheck.checks.engine.under_load import under_load
from dgxcheck.checks.measurement.expectations import due
from dgxcheck.checks.measurement.lookup import device, joined
from dgxcheck.facts.measurement import Measurement
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.paths import Hop, hops_above, hops_between
from dgxcheck.topology.rates import pcie_gbs


def unless_narrow(box: Box, row: Measurement, said: Judgement | None) -> Judgement | None:
    """The same, or a skip where the copy is as fast as a link allows that has fewer lanes, or a lower generation."""
    limit, value = due(box, row), row.number
    if said is None or said.status is Status.PASS or limit is None or value is None:
        return said
    rates = {hop: rate for hop in _hops(box, row) if not isinstance(rate := _trained(box, hop), Missing)}
    if not rates:
        return said
    hop = min(rates, key=lambda each: rates[each])
    whole = _whole(box, [*rates], reference=bool(limit.fail_below))
    if whole is None or rates[hop] >= whole:
        return said
    if value < limit.value * rates[hop] / whole * limit.warn_below / 100:
        return said
    told = f"{said.message}; link {hop} explains it, which runs at gen{hop.max_gen} x{hop.width} at most"
    return skip("dependency-failed", f"see pcie.width, pcie.path or pcie.generation: {told}", *said.evidence)


def _hops(box: Box, row: Measurement) -> tuple[Hop, ...]:
    """The PCIe links that the copy crosses; none over NVLink."""
    one, other, link = device(box, row.a), device(box, row.b), joined(box, row.a, row.b)
    functions = box.topology.functions
    if one is None or isinstance(one.path, Missing):
        return ()
    if not row.b:
        found: tuple[Hop, ...] | Missing = hops_above(one.path, functions)
    elif other is None or link is None or link.nvlinks:
        return ()
    else:
        found = hops_between(one, other, functions)
    return () if isinstance(found, Missing) else tuple(hop for hop in found if not hop.unjudged)


def _trained(box: Box, hop: Hop) -> float | Missing:
    """GB/s with the lanes that it has, under load where somebody looked, at the generation that both ends can do."""
    loaded = under_load(box, hop.device, "link_width")
    width = hop.width if loaded is None or isinstance(hop.width, Missing) else min(hop.width, loaded[0])
    return pcie_gbs(hop.max_gen, width)


def _whole(box: Box, hops: list[Hop], reference: bool) -> float | None:
    """GB/s of the link that the expectation rests on: the profile's, else what both ends can do."""
    numbers = [box.choice.number(key) for key in ("pcie.link_gen", "pcie.link_width")] if box.choice else []
    if reference and len(numbers) == 2 and numbers[0] is not None and numbers[1] is not None:
        rate = pcie_gbs(int(numbers[0].value), int(numbers[1].value))
        return None if isinstance(rate, Missing) else rate
    most = [rate for hop in hops if not isinstance(rate := hop.max_gbs, Missing)]
    return min(most, default=None)
