"""Errors on PCIe links: replays that GPUs count, and Advanced Error Reporting of every device and bridge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from math import ceil

from dgxcheck.checks.engine.blame import itself, own_link
from dgxcheck.checks.engine.box import HOST, Box, Growth, gpu_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import COUNTER_RESET, DAY_S, MIN_EVENTS, NO_EARLIER_READING, counter_growth, rate
from dgxcheck.checks.engine.per_gpu import need, ruled
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.pcie.width import bridge
from dgxcheck.components.component import Component
from dgxcheck.components.gpu_view import GpuView
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import AerDevice, AerErrors
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
PER_LANE = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}
"""Replays per minute and lane that a link of each generation may have (DCGM's health watch)."""
ODD = 10
"""Times as many replays as any other GPU has."""
_KINDS = {"fatal": "fatal error", "nonfatal": "non-fatal error", "correctable": "correctable error"}
"""``aer_dev_*`` files, the worst first."""


def _replay(box: Box) -> Judged:
    growth = box.growth
    totals = {gpu.bdf: total for gpu in box.topology.gpus if (total := _total(box, gpu)) is not None}
    most = nlargest(2, totals.values())
    for gpu in box.gpus:
        if isinstance(growth, Judgement):
            judgement = _odd_total(box, gpu, totals, most) or growth
        else:
            judgement = ruled(_replays, box, growth, gpu)
        yield box.subject(gpu), gpu_unavailable(box, gpu) or judgement


def _odd_total(box: Box, gpu: Device, totals: Mapping[str | None, int], most: Sequence[int]) -> Judgement | None:
    """Without a second reading: a GPU that has replayed far more than any other; None where that cannot be said.

    ``most``: the two highest of all totals.
    """
    own = totals.get(gpu.bdf)
    limit = int(box.settings.limit("pcie.replay-fail"))
    if own is None or len(most) < 2 or own <= limit or own != most[0] or own < ODD * most[1]:
        return None
    rest = "the other GPU has" if len(totals) == 2 else "other GPUs have at most"
    message = f"{counted(own, 'PCIe replay')} since driver load, {rest} {most[1]}"
    evidence = (answered(own, "nvmlDeviceGetPcieReplayCounter", gpu.bdf or ""),)
    return Judgement(Status.WARN, message, own, most[1], "replays", evidence, fault=Fault.PCIE_REPLAYS)


def _total(box: Box, gpu: Device) -> int | None:
    counters = box.gpu(gpu).counters
    if isinstance(counters, Missing) or isinstance(counters.pcie_replays, Missing):
        return None
    return counters.pcie_replays


def _replays(box: Box, growth: Growth, gpu: Device) -> Judgement:
    new = need(GpuView(growth.new, gpu.bdf).counters)
    old = GpuView(growth.old, gpu.bdf).counters
    if isinstance(old, Missing):
        return NO_EARLIER_READING
    events = need(counter_growth(old.pcie_replays, new.pcie_replays))
    if events is None:
        return COUNTER_RESET
    pcie = need(box.gpu(gpu).pcie)
    gen, width = need(pcie.link_gen), need(pcie.link_width)
    limit = ceil(PER_LANE.get(gen, PER_LANE[max(PER_LANE)]) * width * box.settings.limit("pcie.replay"))
    per_minute = rate(events, growth, 60)
    many = per_minute > box.settings.limit("pcie.replay-fail") and events >= MIN_EVENTS and growth.seconds >= 60
    status = Status.FAIL if many else Status.WARN if per_minute > limit else Status.PASS
    total = need(new.pcie_replays)
    message = (
        f"{counted(events, 'PCIe replay')} {growth.how}, {limit} per minute allowed at gen{gen} x{width}"
        f" ({total} since driver load)"
    )
    evidence = (answered(total, "nvmlDeviceGetPcieReplayCounter", gpu.bdf or ""),)
    fault = None if status is Status.PASS else Fault.PCIE_REPLAYS
    return Judgement(status, message, round(per_minute, 2), limit, "per minute", evidence, fault=fault)


def _aer(box: Box) -> Judged:
    growth = box.growth
    if isinstance(growth, Judgement):
        yield HOST, growth
        return
    rows = growth.new.aer
    if isinstance(rows, Missing):
        yield HOST, unjudged(rows)
        return
    old = {} if isinstance(growth.old.aer, Missing) else {row.bdf: row for row in growth.old.aer}
    bdfs = _bdfs(box)
    counting = [
        row for row in rows
        if row.bdf in bdfs and any(not isinstance(errors, Missing) for errors in _by_kind(row).values())
    ]  # fmt: skip
    for row in counting:
        yield _subject(box, row.bdf), _errors(box, growth, old.get(row.bdf), row)
    if not counting:
        yield HOST, skip("not-supported", "no device or bridge counts PCIe errors")


def _bdfs(box: Box) -> set[str]:
    """Of the GPUs asked about and the bridges above them; with all GPUs, of every device."""
    if len(box.gpus) == len(box.topology.gpus):
        return set(box.topology.functions)
    return {bdf for gpu in box.gpus if not isinstance(gpu.path, Missing) for bdf in gpu.path[1:]}


def _by_kind(row: AerDevice) -> Mapping[str, AerErrors | Missing]:
    return {"fatal": row.fatal, "nonfatal": row.nonfatal, "correctable": row.correctable}


def _subject(box: Box, bdf: str) -> Subject:
    device = box.topology.device(bdf)
    if device is None:
        return bridge(bdf)
    return box.subject(device) if device.kind == "gpu" else Subject(kind="hca", name=device.name, bdf=bdf)


def _errors(box: Box, growth: Growth, old: AerDevice | None, new: AerDevice) -> Judgement:
    """The worst kind of error with new events, if any."""
    if old is None:
        return NO_EARLIER_READING
    before = _by_kind(old)
    for kind, after in _by_kind(new).items():
        if isinstance(after, Missing):
            continue
        events = _new_events(before[kind], after)
        if isinstance(events, Judgement):
            return events
        if events:
            evidence = Evidence(f"/sys/bus/pci/devices/{new.bdf}/aer_dev_{kind}", dict(after.counts))
            return _judgement(box, growth, kind, events, evidence)
    return Judgement(Status.PASS, f"no new PCIe errors {growth.how}", 0, 0, "errors")


def _judgement(box: Box, growth: Growth, kind: str, events: Mapping[str, int], evidence: Evidence) -> Judgement:
    count = sum(events.values())
    names = ", ".join(f"{name} {number}" for name, number in events.items())
    message = f"{counted(count, _KINDS[kind])} {growth.how}: {names}"
    if kind != "correctable":
        status = Status.FAIL if kind == "fatal" else Status.WARN
        return Judgement(status, message, count, 0, "errors", (evidence,), fault=Fault.AER_UNCORRECTABLE)
    limit = box.settings.limit("kernel.corrected-pcie")
    message += f" ({limit:g} per day allowed)"
    if count >= MIN_EVENTS and rate(count, growth, DAY_S) > limit:
        return Judgement(Status.WARN, message, count, limit, "errors", (evidence,), fault=Fault.AER_CORRECTABLE)
    return Judgement(Status.PASS, message, count, limit, "errors", (evidence,))


def _new_events(old: AerErrors | Missing, new: AerErrors) -> dict[str, int] | Judgement:
    """New errors by name; the total where no single counter grew."""
    if isinstance(old, Missing):
        return NO_EARLIER_READING
    events = {name: count - old.counts.get(name, 0) for name, count in new.counts.items()}
    if any(count < 0 for count in events.values()):
        return COUNTER_RESET
    total = counter_growth(old.total, new.total)
    if not any(events.values()) and isinstance(total, int):
        events["total"] = total
    return {name: count for name, count in events.items() if count}


def _aer_blames(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The link above a GPU, the links at a bridge; an HCA itself."""
    yield from (itself if subject.kind == "hca" else own_link)(box, subject, judgement)


CHECKS = (
    Check(
        id="pcie.replay",
        rule="Warns if a GPU's PCIe replay counter grows by more than {pcie.replay} DCGM's rate per generation and lane"
        " (8 per minute at gen3 x16); fails above {pcie.replay-fail} per minute, measured over a minute or more. A"
        " non-zero total since driver load alone is not a fault, but warns without a second reading if it is above"
        " {pcie.replay-fail} and ten times that of any other GPU.",
        source="nvmlDeviceGetPcieReplayCounter; DCGM's rate per generation and lane, its diagnostic's limit of 80",
        remedy="watch the counter; if replays continue, cold power cycle at the next maintenance, then run the field"
        " diagnostic (dcgmi diag -r 3) and reseat the GPU, its tray or riser (SXM: the vendor does)",
        judge=_replay,
        witness="counters",
        blames=own_link,
    ),
    Check(
        id="pcie.aer",
        rule="Fails on any new fatal error, warns on any new non-fatal error, and on 3 or more new correctable errors"
        " at more than {kernel.corrected-pcie} per day, at the GPU, HCA, switch or port that counts them.",
        source="aer_dev_fatal, aer_dev_nonfatal and aer_dev_correctable of /sys/bus/pci/devices",
        remedy="cold power cycle; if errors continue, reseat the device below the link (SXM: the vendor does) and check"
        " risers, cables and retimers",
        judge=_aer,
        witness="counters",
        blames=_aer_blames,
    ),
)
