"""Xids of GPUs and SXids of NVSwitches in the kernel log."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import inf
from typing import get_args

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, device_of, own_link, remedy_of
from dgxcheck.checks.engine.finding import Judgement, LogEvent, Status, Subject, counted
from dgxcheck.checks.kernel_log.device_log import (
    boots_since,
    earlier_xids,
    gpu_itself,
    lines,
    of_earlier_boots,
    per_device,
    reach,
)
from dgxcheck.checks.kernel_log.xid_meaning import (
    FAULTS,
    WORST,
    asked_for,
    contained,
    fail_here_alone,
    judge_sxids,
    processes_of,
    xid_status,
)
from dgxcheck.checks.nvlink.links import far_nvlinks, links_down
from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.components.device_facts import architecture
from dgxcheck.components.locate import device_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.kernel_log import ANNOUNCES_RECOVERY, OFF_BUS, EarlierXid, KernelLog, Xid
from dgxcheck.topology.model import Device
from dgxcheck.xid.relations import WINDOW_S, link_of, places, recovery_words, sxid_response
from dgxcheck.xid.table import REMEDIES, Part, Severity, XidEntry, meaning

_CLEANED_UP = 45
"""Follows other errors, and the end of every process of a job that is killed: it counts for no process."""
_SEVERITIES: tuple[Severity, ...] = get_args(Severity)
_RESETS = (Fault.XID, Fault.RESET_REQUIRED, Fault.DRAIN_AND_RESET, Fault.REBOOT_REQUIRED)
_PARTS: tuple[Part, ...] = get_args(Part)
"""Of several that Xids name, the first."""


def _xids(box: Box, log: KernelLog, bdf: str, _: Device | None) -> Judgement | None:
    """Fails or warns on hardware Xids since the GPU's last reset or driver load, by the classes of NVIDIA's catalogue,
    before Ampere by those of its older list (dgxcheck xid NUMBER explains one); 74 warns, and fails if it occurs twice.
    Application Xids (13, 31, 43, 45 and others) are informational, and warn from {kernel.xid-processes} on one GPU
    within a day. Xid 79 is judged by kernel.off-bus. For an NVSwitch, a fatal SXid fails and any other warns, except
    those that NVIDIA's Fabric Manager guide calls harmless. Hardware Xids of earlier boots in the same log warn, unless
    many boots without one followed.

    Source: https://docs.nvidia.com/deploy/xid-errors/analyzing-xid-catalog.html
    """
    if switch := [sxid for sxid in log.sxids if sxid.bdf == bdf]:
        return judge_sxids(log, switch)
    all_times = [xid for xid in log.xids if xid.bdf == bdf and xid.number != OFF_BUS]
    now = [xid for xid in all_times if not xid.past]
    earlier = len(all_times) - len(now)
    history = [f"{counted(earlier, 'Xid')} before the last reset or driver load"] if earlier else []
    before = _of_earlier_boots(box, log, bdf)
    if not now and before is not None:
        return before[1]
    if not now:
        message = f"{''.join(history)}{reach(log)}"
        return Judgement(Status.PASS, message, evidence=lines(log, all_times)) if all_times else None
    history += [before[0]] if before is not None else []
    entries = _meanings(box, bdf, now)
    entries |= contained(now, entries)
    applications = [xid for xid in now if entries[xid.number].severity == "application" and xid.number != _CLEANED_UP]
    processes = processes_of(applications)
    many = processes >= box.settings.limit("kernel.xid-processes")
    primary = frozenset(_primary(now, entries, log.timed))
    times = Counter(number for number, _ in {(xid.number, xid.seconds) for xid in now})
    statuses = ((xid_status(entries[xid.number], xid.text, times[xid.number], xid.ended_channel), xid) for xid in now)
    judged = [(status if xid in primary else Status.PASS, xid) for status, xid in statuses]
    if many:
        judged += [(Status.WARN, xid) for xid in applications]
    worst = min((status for status, _ in judged), key=WORST.index)
    reported = [each for status, each in judged if status is worst]
    first = {xid.number for xid in reported}
    numbers = sorted(dict.fromkeys(xid.number for xid in now), key=lambda number: number not in first)
    parts = [f"application Xids of {processes} processes within a day"] if many else []
    parts += [_words(numbers, now, entries), *history]
    message = f"{'; '.join(parts)}{reach(log)}"
    if worst is Status.PASS:
        return Judgement(worst, message, len(now), None, "Xids", lines(log, reported))
    suspect = frozenset(applications).issuperset(reported) and fail_here_alone(log, bdf, applications)
    response, fault = asked_for((entries[xid.number], xid.text) for xid in reported)
    return Judgement(
        worst, message, len(now), None, "Xids", lines(log, reported),
        fault=Fault.XID_PROGRAMS if suspect else fault,
        remedy=remedy_of("kernel.xid", "programs") if suspect else REMEDIES[response],
        events=tuple(_event(each, entries[each.number]) for status, each in judged if status is not Status.PASS),
    )  # fmt: skip


def _meanings(box: Box, bdf: str, xids: Iterable[Xid | EarlierXid]) -> dict[int, XidEntry]:
    return {xid.number: meaning(xid.number, architecture(box, bdf)) for xid in xids}


def _of_earlier_boots(box: Box, log: KernelLog, bdf: str) -> tuple[str, Judgement] | None:
    """``Xid 48 (double-bit ECC error) in 1 earlier boot of this log``, those of hardware first, and what that is of a
    GPU without an Xid in this boot; None where the boots before had none either.

    Those of hardware are watched, unless many boots have passed without one.
    """
    every = [xid for xid in earlier_xids(log, bdf) if xid.number != OFF_BUS]
    if not every:
        return None
    entries = _meanings(box, bdf, every)
    serious = [xid for xid in every if xid_status(entries[xid.number], xid.text, 1) is not Status.PASS]
    first = {xid.number for xid in serious}
    numbers = sorted(entries, key=lambda number: number not in first)
    boots = len({xid.boot for xid in every})
    words = ", ".join(f"Xid {number} ({entries[number].text})" for number in numbers)
    words = f"{words} in {counted(boots, 'earlier boot')} of this log"
    message, evidence = f"{words}, none since{reach(log)}", of_earlier_boots(log, every)
    if not serious or boots_since({xid.boot for xid in serious}):
        return words, Judgement(Status.PASS, message, evidence=evidence)
    return words, Judgement(Status.WARN, message, boots, 0, "boots", evidence, fault=Fault.XID_NOTICE)


def _event(xid: Xid, entry: XidEntry) -> LogEvent:
    """When an Xid was logged, and the NVLink that it names: ``NVLink: fatal error detected on link 2(0x10000, ..``."""
    if entry.about != "NVLink":
        return LogEvent(xid.seconds, number=xid.number)
    return LogEvent(xid.seconds, "nvlink", xid.number, link_of(xid.text))


def _primary(xids: Sequence[Xid], entries: Mapping[int, XidEntry], timed: bool) -> list[Xid]:
    """Those of one GPU without the NVLink errors that follow from the failure of the GPU itself."""
    within = WINDOW_S if timed else inf
    seconds = {number: sorted({xid.seconds for xid in xids if xid.number == number}) for number in entries}

    def follows(xid: Xid) -> bool:
        others = (seconds[number] for number in entries if "same-gpu" in places(xid.number, number))
        begin, end = xid.seconds - within, xid.seconds + within
        return any(bisect_right(each, end) > bisect_left(each, begin) for each in others)

    of_nvlinks = {number for number, entry in entries.items() if entry.about == "NVLink"}
    return [xid for xid in xids if xid.number not in of_nvlinks or not follows(xid)]


def _words(numbers: Sequence[int], events: Sequence[Xid], entries: Mapping[int, XidEntry]) -> str:
    """``Xid 48 (double-bit ECC error), Xid 45 (channel removed after another error) 3 times``; ``GPU reset required (no
    Xid)`` where the driver says it in other words alone."""
    times: Counter[int] = Counter()
    links: dict[int, set[int]] = defaultdict(set)
    texts = {number: entries[number].text for number in numbers}
    for xid in events:
        times[xid.number] += 1 + xid.more
        if xid.number == ANNOUNCES_RECOVERY and (asked := recovery_words(xid.text)):
            texts[xid.number] = asked
        if entries[xid.number].about == "NVLink" and (link := link_of(xid.text)) is not None:
            links[xid.number].add(link)
    logged = {xid.number for xid in events if "Xid" in xid.line}
    return ", ".join(
        (f"Xid {number} ({texts[number]})" if number in logged else f"{texts[number]} (no Xid)")
        + (f" {times[number]} times" if times[number] > 1 else "")
        + _of_links(sorted(links[number]))
        for number in numbers
    )


def _of_links(numbers: Sequence[int]) -> str:
    return f" at link{'s' * (len(numbers) > 1)} {', '.join(map(str, numbers))}" if numbers else ""


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The part of the GPU that its Xids name, its PCIe link, or the NVLinks that it shares; the NVSwitch."""
    gpu = device_of(box, at)
    if judgement.fault in FAULTS:
        yield Component(kind="nvswitch", name=at.bdf or at.name, bdf=at.bdf)
        return
    if gpu is None or gpu.kind != "gpu":
        yield from gpu_itself(box, at, judgement)
        return
    part = _part(box, gpu.bdf or "")
    if part == "PCIe link":
        yield from own_link(box, at, judgement)
        return
    named = {event.link for event in judgement.events if event.kind == "nvlink"}
    links = {link for link in named if link is not None} | links_down(box, gpu)
    far = [*far_nvlinks(box, gpu, None if None in named else links)] if part == "NVLink" else []
    here = device_part(box, gpu, part)
    yield from (*far, here) if judgement.fault in (Fault.XID_PEER, Fault.XID_SIGNAL) else (here, *far)


def _part(box: Box, bdf: str) -> Part:
    """The part of the GPU that the most severe of its Xids since the last reset are about."""
    own = [xid for xid in box.log.xids if xid.bdf == bdf and not xid.past]
    table = _meanings(box, bdf, own)
    numbers = {xid.number for xid in _primary(own, table, box.log.timed)} - {OFF_BUS, ANNOUNCES_RECOVERY}
    entries = [table[number] for number in numbers]
    worst = min((_SEVERITIES.index(entry.severity) for entry in entries), default=0)
    parts = {entry.about for entry in entries if _SEVERITIES.index(entry.severity) == worst}
    return next((part for part in _PARTS if part and part in parts), "")


def _named(log: KernelLog) -> list[str]:
    before = (xid.bdf for xid in earlier_xids(log) if xid.number != OFF_BUS)
    return [*(xid.bdf for xid in log.xids), *(sxid.bdf for sxid in log.sxids), *before]


def _shared(box: Box, at: Subject, judgement: Judgement) -> Component | None:
    """The driver, with the firmware that it loads, where every GPU needs a reset after an Xid that names no part of
    one; a reset that is announced without the error which it follows says of nothing whose it is. The air, where all
    that an NVSwitch reports is heat: that it lacks air shows at the others, and at GPUs."""
    if judgement.fault in FAULTS:
        asked = {sxid_response(each.number or 0, None) for each in judgement.events}
        return host_part("cooling") if asked == {"cooling"} else None
    fails = any(event.number != ANNOUNCES_RECOVERY for event in judgement.events)
    return DRIVER if judgement.fault in _RESETS and fails and not _part(box, at.bdf or "") else None


CHECKS = (Check("kernel.xid", per_device(_xids, _named, "no Xids logged"), _blames, _shared),)
