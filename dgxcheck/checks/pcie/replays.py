"""Replays on the PCIe links of GPUs, as the GPUs count them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

from dgxcheck.checks.engine.box import Box, Growth, gpu_unavailable
from dgxcheck.checks.engine.check import Check, own_link, ruled
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, answered, counted, given, judged
from dgxcheck.checks.engine.growth import (
    DAY_S,
    MIN_EVENTS,
    NO_EARLIER_READING,
    flood,
    new_events,
    or_total,
    rate,
    uptime,
)
from dgxcheck.components.device_facts import GpuView
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.missing import known, need, or_none
from dgxcheck.topology.model import Device

PER_LANE = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}
"""Replays per minute and lane that a link of each generation may have (DCGM's health watch)."""
ODD = 10
"""Times as many replays as any other GPU has."""


def _replay(box: Box) -> Judged:
    """Warns if a GPU's PCIe replay counter grows by more than {pcie.replay} DCGM's rate per generation and lane (8 per
    minute at gen3 x16); fails above {pcie.replay-fail} per minute, measured over a minute or more. A non-zero total
    since driver load alone is not a fault, but warns where growth over an hour or more is not known if it is above
    {pcie.replay-fail} a day and ten times that of any other GPU.

    Source: nvmlDeviceGetPcieReplayCounter; DCGM's rate per generation and lane, its diagnostic's limit of 80
    """
    growth = box.growth
    totals = {gpu.bdf: total for gpu in box.topology.gpus if (total := _total(box, gpu)) is not None}
    most = sorted(totals.values(), reverse=True)
    for gpu in box.gpus:
        judgement = growth if isinstance(growth, Judgement) else ruled(_replays, box, growth, gpu)
        odd = _odd_total(box, gpu, totals, most)
        yield box.subject(gpu), gpu_unavailable(box, gpu) or or_total(growth, judgement, odd)


def _odd_total(box: Box, gpu: Device, totals: Mapping[str | None, int], most: Sequence[int]) -> Judgement | None:
    """Without a second reading: a GPU that has replayed far more than any other; None where that cannot be said.

    ``most``: all totals, the highest first.
    """
    own = totals.get(gpu.bdf)
    limit = int(box.settings.limit("pcie.replay-fail"))
    if own is None or len(most) < 2 or own <= limit or own != most[0] or own < ODD * most[1]:
        return None
    if uptime(box) is not None and flood(box, own, None, limit, DAY_S) is None:
        return None
    rest = "the other GPU has" if len(totals) == 2 else f"other GPUs have{' at most' if most[1] else ''}"
    message = f"{counted(own, 'PCIe replay')} since driver load, {rest} {most[1] or 'none'}"
    evidence = (answered(own, "nvmlDeviceGetPcieReplayCounter", gpu.bdf or ""),)
    return Judgement(Status.WARN, message, own, most[1], "replays", evidence, fault=Fault.PCIE_REPLAYS)


@or_none
def _total(box: Box, gpu: Device) -> int | None:
    return need(need(box.gpu(gpu).counters).pcie_replays)


def _replays(box: Box, growth: Growth, gpu: Device) -> Judgement:
    new = need(GpuView(growth.new, gpu.bdf).counters)
    old = given(known(GpuView(growth.old, gpu.bdf).counters) or NO_EARLIER_READING)
    events = new_events(old.pcie_replays, new.pcie_replays)
    pcie = need(box.gpu(gpu).pcie)
    gen, width = need(pcie.link_gen), need(pcie.link_width)
    limit = ceil(PER_LANE.get(gen, PER_LANE[max(PER_LANE)]) * width * box.settings.limit("pcie.replay"))
    per_minute = rate(events, growth, 60)
    many = per_minute > box.settings.limit("pcie.replay-fail") and events >= MIN_EVENTS and growth.seconds >= 60
    more = per_minute > limit
    total = need(new.pcie_replays)
    message = (
        f"{counted(events, 'PCIe replay')} {growth.how}, {limit} per minute allowed at gen{gen} x{width}"
        f" ({total} since driver load)"
    )
    evidence = (answered(total, "nvmlDeviceGetPcieReplayCounter", gpu.bdf or ""),)
    per_minute = round(per_minute, 2)
    return judged(Fault.PCIE_REPLAYS, message, per_minute, limit, "per minute", evidence, warns=more, fails=many)


CHECKS = (Check("pcie.replay", _replay, own_link, counters=True),)
