"""Error counters of NVLinks, judged by their growth alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from dgxcheck.checks.engine.box import Box, Growth
from dgxcheck.checks.engine.check import Check, asked, of_listed_gpus
from dgxcheck.checks.engine.finding import BAD, Evidence, Judged, Judgement, Status, Subject, counted, judged, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.checks.engine.growth import (
    COUNTER_RESET,
    DAY_S,
    NO_EARLIER_READING,
    counter_growth,
    flood,
    or_total,
)
from dgxcheck.checks.nvlink.links import links_down, nvlinks
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.components.locate import all_nvlinks
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import NVLINK5_BER, NVLINK5_ERRORS
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.nvml.nvlink import NvLinkErrors
from dgxcheck.facts.nvml.quantities import LINK_ERRORS
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device

_RECOVERIES, _RATES = ("recovery_failed", "recovered"), tuple(NVLINK5_BER)
COUNTERS = (*LINK_ERRORS, *(name for name in NVLINK5_ERRORS if name not in _RECOVERIES))
"""Until NVLink 4, and from NVLink 5 on."""
CRC = ("crc_flit", "crc_data")
NVLINK_ERROR = 74
"""Xid."""


def _errors(box: Box) -> Judged:
    """Warns if the replay, recovery, CRC or ECC error counters of an NVLink that is up grow; fails from
    {nvlink.recoveries} or {nvlink.crc} on, and on the first recovery if the kernel log has Xid 74 of the GPU since its
    last reset or driver load. Where growth over an hour or more is not known, also warns above {nvlink.total} (CRC:
    {nvlink.total-crc}) over the whole time since boot; fewer are no fault. From NVLink 5 on fails on a recovery that
    failed and on an effective or symbol error rate above {nvlink.ber}, which NVML reports or the growth of the errors
    makes, and warns on a recovery that succeeded.

    Source: nvmlDeviceGetNvLinkErrorCounter, from NVLink 5 on NVML_FI_DEV_NVLINK_COUNT_*; DCGM's health watch, which
    fails on a recovery before NVLink 5, and on 100 CRC errors a second
    """
    return of_listed_gpus(box, partial(_of_gpu, box))


def _of_gpu(box: Box, gpu: Device, subject: Subject) -> Judged:
    growth = box.growth
    totals = _totals(box, gpu)
    if isinstance(growth, Judgement):
        yield from ((replace(subject, part=str(link)), judgement) for link, judgement in totals.items())
        if not totals:
            yield subject, growth
        return
    if isinstance(growth.new.nvlink_errors, Missing):
        yield subject, unjudged(growth.new.nvlink_errors)
        return
    old = {row.link: row for row in rows(growth.old.nvlink_errors) if row.bdf == gpu.bdf}
    down = links_down(box, gpu)
    listed = [row for row in growth.new.nvlink_errors if row.bdf == gpu.bdf and row.link not in down]
    for row in listed:
        judgement = _judged(box, growth, old.get(row.link), row)
        own = None if judgement.status in BAD else _of_nvlink_5(box, row)
        yield replace(subject, part=str(row.link)), own or or_total(growth, judgement, totals.get(row.link))
    if not listed:
        yield subject, skip("not-supported", "this GPU has no NVLink up")


def _totals(box: Box, gpu: Device) -> dict[int, Judgement]:
    """By position of the links that are up: errors at more than the daily rate over all the time since boot."""
    listed = rows(box.snapshot.nvlink_errors)
    down = links_down(box, gpu)
    found: dict[int, Judgement] = {}
    for row in [row for row in listed if row.bdf == gpu.bdf and row.link not in down]:
        if (now := _of_nvlink_5(box, row)) is not None:
            found[row.link] = now
        for name in COUNTERS if now is None else ():
            count, limit = getattr(row, name), box.settings.limit("nvlink.total-crc" if name in CRC else "nvlink.total")
            others = (_count(other, name) for other in listed if other is not row)
            since = flood(box, count, others, limit, DAY_S) if isinstance(count, int) else None
            if since is not None:
                errors = counted(count, f"{name.removesuffix('s')} error")
                message = f"link {row.link}: {errors} {since} ({limit:g} per day allowed)"
                facts = (count, limit, "errors", asked(row, name))
                found[row.link] = judged(Fault.NVLINK_ERRORS, message, *facts, warns=True)
    return found


def _of_nvlink_5(box: Box, row: NvLinkErrors) -> Judgement | None:
    """What one reading tells from NVLink 5 on: recoveries, and error rates; None where there is nothing wrong."""
    limit = box.settings.limit("nvlink.ber")
    for name in _RATES:
        rate = getattr(row, name)
        if isinstance(rate, float) and rate > limit:
            message = f"link {row.link}: {name.replace('_ber', ' bit error rate')} {rate:g} (limit {limit:g})"
            return judged(Fault.NVLINK_ERRORS, message, rate, limit, "errors a bit", asked(row, name), fails=True)
    for name, status, word in zip(_RECOVERIES, (Status.FAIL, Status.WARN), ("failed", "succeeded"), strict=True):
        count = getattr(row, name)
        if isinstance(count, int) and count:
            message = f"link {row.link}: {counted(count, 'recovery', 'recoveries')} {word} since the driver was loaded"
            return Judgement(status, message, count, 0, "recoveries", asked(row, name), fault=Fault.NVLINK_ERRORS)
    return None


def _count(row: NvLinkErrors, name: str) -> int:
    count = getattr(row, name)
    return count if isinstance(count, int) else 0


def _judged(box: Box, growth: Growth, old: NvLinkErrors | None, new: NvLinkErrors) -> Judgement:
    if old is None:
        return NO_EARLIER_READING
    growths = {name: counter_growth(getattr(old, name), getattr(new, name)) for name in COUNTERS}
    events = {name: more for name, more in growths.items() if isinstance(more, int)}
    errors = {name: more for name, more in events.items() if more}
    if not errors:
        unknown = [more for more in growths.values() if not isinstance(more, int)]
        skips = [COUNTER_RESET if more is None else unjudged(more) for more in dict.fromkeys(unknown)]
        unread = next((judgement for judgement in skips if judgement.reason != "not-supported"), None)
        if unread is not None or not events:
            return unread or skips[0]
        return Judgement(Status.PASS, f"no new errors {growth.how}", 0, 0, "errors")
    recoveries = events.get("recovery", 0)
    xid = _xid_74(box, new.bdf) if recoveries else None
    crc = max((events.get(name, 0) for name in CRC), default=0) / max(growth.seconds, 1.0)
    ber = _growing_ber(box, growth, new, errors)
    many = (recoveries >= box.settings.limit("nvlink.recoveries") or crc >= box.settings.limit("nvlink.crc")
            or ber > box.settings.limit("nvlink.ber"))  # fmt: skip
    evidence = asked(new, *errors)
    total = sum(errors.values())
    by_counter = ", ".join(f"{name} {more}" for name, more in errors.items())
    message = f"link {new.link}: {counted(total, 'new error')} {growth.how} ({by_counter})"
    if crc >= 1:
        message += f", {crc:.0f} CRC errors a second"
    if ber:
        message += f", {ber:.0e} of all bits"
    if xid is not None:
        message += "; Xid 74 of this GPU in the kernel log"
        evidence += (xid,)
    failed = xid is not None or many
    return judged(Fault.NVLINK_ERRORS, message, total, 0, "errors", evidence, warns=True, fails=failed)


def _growing_ber(box: Box, growth: Growth, link: NvLinkErrors, errors: Mapping[str, int]) -> float:
    """New errors that were left after correction, of all bits that the link carries in that time; 0.0 where there are
    none, or its rate is not known."""
    left = max(errors.get("effective", 0), errors.get("symbols", 0))
    speeds = (row.speed_mbs for row in rows(box.snapshot.nvlink_rate) if (row.bdf, row.link) == (link.bdf, link.link))
    speed = next(speeds, 0) if left else 0
    return left / (speed * 8e6 * growth.seconds) if isinstance(speed, int) and speed and growth.seconds > 0 else 0.0


def _xid_74(box: Box, bdf: str) -> Evidence | None:
    """The last NVLink error that the driver logged for this GPU since its reset or the driver load."""
    lines = [xid.line for xid in box.log.xids if xid.bdf == bdf and xid.number == NVLINK_ERROR and not xid.past]
    return Evidence(box.log.where, lines[-1]) if lines else None


CHECKS = (
    Check("nvlink.errors", _errors, nvlinks,
        lambda box, at, judgement: NVSWITCHES if all_nvlinks(box) == NVSWITCHES else None, counters=True),
)  # fmt: skip
