"""Errors on PCIe links: replays that GPUs count, and Advanced Error Reporting of every device and bridge."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from dgxcheck.checks.engine.box import HOST, Box, Growth, gpu_unavailable, row_of
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import COUNTER_RESET, DAY_S, MIN_EVENTS, counter_growth, rate
from dgxcheck.checks.pcie.width import bridge
from dgxcheck.facts.gpu import GpuCounters, GpuPcie
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import AerDevice, AerErrors
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]
PER_LANE = {1: 0.15, 2: 0.3, 3: 0.48, 4: 0.96, 5: 1.92, 6: 3.84}
"""Replays a minute and lane that a link of each generation may have (DCGM's health watch)."""
_FILES = ("fatal", "nonfatal", "correctable")


def _replay(box: Box) -> Judged:
    for gpu in box.gpus:
        yield box.subject(gpu), gpu_unavailable(box, gpu) or _replayed(box, gpu)


def _replayed(box: Box, gpu: Device) -> Judgement:
    growth = box.growth
    if isinstance(growth, Judgement):
        return growth
    old, new = (row_of(each.gpu_counters, gpu.bdf) for each in (growth.old, growth.new))
    if not isinstance(new, GpuCounters):
        return unjudged(new) if isinstance(new, Missing) else new
    if not isinstance(old, GpuCounters):
        return skip("no-history", "it was not read before")
    events = counter_growth(old.pcie_replays, new.pcie_replays)
    if events is None:
        return COUNTER_RESET
    if isinstance(events, Missing):
        return unjudged(events)
    link = row_of(box.snapshot.gpu_pcie, gpu.bdf)
    if not isinstance(link, GpuPcie):
        return unjudged(link) if isinstance(link, Missing) else link
    for fact in (link.link_gen, link.link_width):
        if isinstance(fact, Missing):
            return unjudged(fact)
    return _rated(box, growth, gpu, events, (link.link_gen, link.link_width), new.pcie_replays)


def _rated(
    box: Box, growth: Growth, gpu: Device, events: int, link: tuple[int | Missing, int | Missing], total: int | Missing
) -> Judgement:
    gen, width = link
    if isinstance(gen, Missing) or isinstance(width, Missing) or isinstance(total, Missing) or gpu.bdf is None:
        return skip("not-supported", "its link or counter is not known")
    per_lane = PER_LANE.get(gen, PER_LANE[max(PER_LANE)])
    limit = ceil(per_lane * width * box.settings.limit("pcie.replay"))
    rate = events * 60 / max(growth.seconds, 60)  # below a minute, the events themselves
    many = rate > box.settings.limit("pcie.replay-fail") and events >= MIN_EVENTS and growth.seconds >= 60
    status = Status.FAIL if many else Status.WARN if rate > limit else Status.PASS
    message = f"{events} replays {growth.how}, {limit} a minute allowed at gen{gen} x{width}; {total} in all"
    evidence = (answered(total, "nvmlDeviceGetPcieReplayCounter", gpu.bdf),)
    return Judgement(status, message, round(rate, 2), limit, "per minute", evidence)


def _aer(box: Box) -> Judged:
    growth = box.growth
    if isinstance(growth, Judgement):
        yield HOST, growth
        return
    rows = growth.new.aer
    if isinstance(rows, Missing):
        yield HOST, unjudged(rows)
        return
    before = {} if isinstance(growth.old.aer, Missing) else {row.bdf: row for row in growth.old.aer}
    wanted = _asked(box)
    judged = 0
    for row in rows:
        counted = any(not isinstance(getattr(row, name), Missing) for name in _FILES)
        if row.bdf in wanted and counted:
            judged += 1
            yield _subject(box, row.bdf), _errors(box, growth, before.get(row.bdf), row)
    if not judged:
        yield HOST, skip("not-supported", "no device or bridge here counts PCIe errors")


def _asked(box: Box) -> set[str]:
    """What is above the GPUs asked about; with all GPUs, every device that counts."""
    if len(box.gpus) == len(box.topology.gpus):
        return set(box.topology.functions)
    return {bdf for gpu in box.gpus if not isinstance(gpu.path, Missing) for bdf in gpu.path[1:]}


def _subject(box: Box, bdf: str) -> Subject:
    device = next((each for each in box.topology.devices if each.bdf == bdf), None)
    if device is None:
        return bridge(bdf)
    return box.subject(device) if device.kind == "gpu" else Subject(kind="hca", name=device.name, bdf=bdf)


def _errors(box: Box, growth: Growth, old: AerDevice | None, new: AerDevice) -> Judgement:
    if old is None:
        return skip("no-history", "it was not read before")
    for name in _FILES:
        before, after = getattr(old, name), getattr(new, name)
        if isinstance(after, Missing):
            continue
        events = _events(before, after)
        if isinstance(events, Judgement):
            return events
        if not events:
            continue
        what = ", ".join(f"{error} {count}" for error, count in events.items())
        status = Status.FAIL if name == "fatal" else Status.WARN
        limit: int | float = 0
        if name == "correctable":
            limit = box.settings.limit("kernel.corrected-pcie")
            count = sum(events.values())
            often = count >= MIN_EVENTS and rate(count, growth, DAY_S) > limit
            status = Status.WARN if often else Status.PASS
        evidence = (Evidence(f"/sys/bus/pci/devices/{new.bdf}/aer_dev_{name}", dict(after.counts)),)
        message = f"{name} errors {growth.how}: {what}" + (f"; {limit:g} a day allowed" if limit else "")
        return Judgement(status, message, sum(events.values()), limit, "errors", evidence)
    return Judgement(Status.PASS, f"no new PCIe errors {growth.how}", 0, 0, "errors")


def _events(old: AerErrors | Missing, new: AerErrors) -> dict[str, int] | Judgement:
    """New errors by name; the total stands in where no single counter grew."""
    if isinstance(old, Missing):
        return skip("no-history", "it was not read before")
    more = {name: count - old.counts.get(name, 0) for name, count in new.counts.items()}
    if any(count < 0 for count in more.values()):
        return COUNTER_RESET
    total = counter_growth(old.total, new.total)
    if not any(more.values()) and isinstance(total, int):
        more["total"] = total
    return {name: count for name, count in more.items() if count}


CHECKS = (
    Check(
        id="pcie.replay",
        rule="Warns where a GPU's link was replayed more often a minute than {pcie.replay} the rate of its generation,"
        " which is 8 at gen3 x16; fails above {pcie.replay-fail} a minute, seen over a minute or more. The number since"
        " the driver was loaded is no fault.",
        source="nvmlDeviceGetPcieReplayCounter; DCGM's rate per generation and lane, its diagnostic's limit of 80",
        remedy="reseat the GPU, its tray or riser and look for dirt and damage; then run the field diagnostic",
        judge=_replay,
    ),
    Check(
        id="pcie.aer",
        rule="Fails on each new fatal error, warns on each new nonfatal one, and on correctable ones from 3 on,"
        " where they make more than {kernel.corrected-pcie} a day, at the GPU, HCA, switch or port that counts them.",
        source="aer_dev_fatal, aer_dev_nonfatal and aer_dev_correctable of /sys/bus/pci/devices",
        remedy="reseat what hangs on the link of the device named, and look at risers, cables and retimers",
        judge=_aer,
    ),
)
