"""Error counters of NVLinks, judged by their growth alone."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box, Growth, gpu_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import COUNTER_RESET, counter_growth
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.nvlink import NvLinkErrors
from dgxcheck.facts.record import replace

Judged = Iterator[tuple[Subject, Judgement]]
COUNTERS = ("replay", "recovery", "crc_flit", "crc_data", "ecc_data")
"""By ``nvmlNvLinkErrorCounter_t``."""
NVLINK_ERROR = 74
"""Xid."""


def _errors(box: Box) -> Judged:
    for gpu in box.gpus:
        subject = box.subject(gpu)
        growth = box.growth
        quiet = gpu_unavailable(box, gpu) or (growth if isinstance(growth, Judgement) else None)
        if quiet is not None or isinstance(growth, Judgement):
            yield subject, quiet or COUNTER_RESET
            continue
        if isinstance(growth.new.nvlink_errors, Missing):
            yield subject, unjudged(growth.new.nvlink_errors)
            continue
        old = () if isinstance(growth.old.nvlink_errors, Missing) else growth.old.nvlink_errors
        before = {row.link: row for row in old if row.bdf == gpu.bdf}
        rows = [row for row in growth.new.nvlink_errors if row.bdf == gpu.bdf and row.link not in _down(box, row.bdf)]
        for row in rows:
            yield replace(subject, part=str(row.link)), _judged(box, growth, before.get(row.link), row)
        if not rows:
            yield subject, skip("not-supported", "this GPU has no NVLink up")


def _down(box: Box, bdf: str) -> set[int]:
    """Positions without a link that is up, be it that none is wired: told by the other checks of NVLink."""
    links = box.snapshot.nvlink
    return (
        set() if isinstance(links, Missing) else {link.link for link in links if link.bdf == bdf and link.up is False}
    )


def _judged(box: Box, growth: Growth, old: NvLinkErrors | None, new: NvLinkErrors) -> Judgement:
    if old is None:
        return skip("no-history", "it was not read before")
    events: dict[str, int] = {}
    hidden: list[Judgement] = []
    for name in COUNTERS:
        more = counter_growth(getattr(old, name), getattr(new, name))
        if isinstance(more, int):
            events[name] = more
        else:
            hidden.append(COUNTER_RESET if more is None else unjudged(more))
    told = {name: more for name, more in events.items() if more}
    if not told:
        broken = next((each for each in hidden if each.reason != "not-supported"), None)
        if broken is not None or not events:
            return broken or hidden[0]
        return Judgement(Status.PASS, f"no new errors {growth.how}", 0, 0, "errors")
    recoveries = events.get("recovery", 0)
    xid = _xid_74(box, new.bdf) if recoveries else None
    failed = xid is not None or recoveries >= box.settings.limit("nvlink.recoveries")
    said = ", ".join(f"{name} {more}" for name, more in told.items())
    evidence = tuple(
        answered(getattr(new, name), "nvmlDeviceGetNvLinkErrorCounter", new.bdf, new.link, COUNTERS.index(name))
        for name in told
    )
    message = f"link {new.link}, new errors {growth.how}: {said}"
    if xid is not None:
        message += "; the kernel log has Xid 74 of this GPU"
        evidence += (xid,)
    return Judgement(Status.FAIL if failed else Status.WARN, message, sum(told.values()), 0, "errors", evidence)


def _xid_74(box: Box, bdf: str) -> Evidence | None:
    """The last NVLink error that the driver logged of this GPU since its reset or the driver's load."""
    log = box.snapshot.kernel_log
    if isinstance(log, Missing):
        return None
    seen = [each for each in log.xids if each.bdf == bdf and each.number == NVLINK_ERROR and not each.past]
    return Evidence(log.where, seen[-1].line) if seen else None


CHECKS = (
    Check(
        id="nvlink.errors",
        rule="Warns where replays, recoveries or CRC and ECC errors of a link grew, fails from {nvlink.recoveries} on,"
        " and on the first recovery where the kernel log has Xid 74 of the GPU since its last reset or driver load;"
        " each link of each GPU that is up. The numbers since the driver was loaded are no fault.",
        source="nvmlDeviceGetNvLinkErrorCounter; DCGM's health watch, which fails on a recovery",
        remedy="look for Xid 74; if it goes on, reseat the GPU or the bridge and run the field diagnostic",
        judge=_errors,
    ),
)
