"""Records of the kernel log as events, by the same parsers and tables that ``health`` judges them by."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from time import gmtime, strftime

from dgxcheck.checks.engine.finding import Status
from dgxcheck.checks.engine.growth import COMES_UP_S
from dgxcheck.checks.kernel_log.hca import hca_status
from dgxcheck.checks.kernel_log.xid_meaning import contained, sxid_status, xid_status
from dgxcheck.facts.kernel_log import OFF_BUS, HcaEvent, HostEvent, KernelLog, Xid
from dgxcheck.facts.missing import BadInput, Missing
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.source.kernel_log.kmsg import relevant_lines
from dgxcheck.survey import log_facts
from dgxcheck.watch.event import TEXT_CHARACTERS, Event, ReportedEvent
from dgxcheck.watch.fold import Ledger
from dgxcheck.xid.relations import link_of
from dgxcheck.xid.table import XidEntry, meaning, sxids

SAME_S = 2.0
"""A GPU that falls off the bus is logged with and without an Xid within this time."""
_OF_TASKS = ("stuck", "hung", "crashed", "out of memory", "panic")
"""Their part is the name of a task or a text: any, and many."""
_QUIET = ("no BAR", "located")
"""The first matters for GPUs alone, the second is said of every NVMe disk at boot."""
_DATED = 1980
"""Dates of syslog have no year, and are read as of one before this."""
Seen = Callable[[str, str], int]
"""How often an Xid of a GPU was counted before, by bus id and number."""


def log_events(log: KernelLog, seen: Seen, past: bool = True) -> list[Event]:
    """Its events in their order; ``past`` False: without those from before a reset or driver load."""
    found = [*_xids(log, seen, past), *_off_bus(log, past), *_devices(log, past), *_pcie(log), *_host(log, past)]
    return sorted(found, key=lambda event: event.seconds or 0.0)


def xid_event(
    bdf: str, number: int, more: str, times: int, entry: XidEntry | None = None, ended: bool = False
) -> Event:
    """``more`` is what its line says after the number, ``times`` how often this GPU had it by now; the ``entry`` is by
    what was logged beside it, and so is whether it ``ended`` a channel."""
    own = meaning(number, None)
    text = f"Xid {number} ({own.text}){f': {more}' if more else ''}"
    status = xid_status(entry or own, more, times, ended)
    return Event(kind="xid", status=status, bdf=bdf, code=str(number), text=_cut(text))


def _xids(log: KernelLog, seen: Seen, past: bool) -> Iterator[Event]:
    times: dict[tuple[str, int], int] = {}
    entries = {bdf: contained(own, {xid.number: meaning(xid.number, None) for xid in own})
               for bdf, own in gathered((xid.bdf, xid) for xid in log.xids).items()}  # fmt: skip
    for xid in log.xids:
        if past or not xid.past:
            number = times[xid.bdf, xid.number] = times.get((xid.bdf, xid.number), 0) + 1 + xid.more
            before, entry = seen(xid.bdf, str(xid.number)), entries[xid.bdf].get(xid.number)
            event = xid_event(xid.bdf, xid.number, _more(xid), number + before, entry, xid.ended_channel)
            yield replace(event, count=1 + xid.more, seconds=xid.seconds)
    for sxid in log.sxids:
        if past or not sxid.past:
            entry = sxids().get(sxid.number)
            text = entry.text if entry is not None else "not in NVIDIA's guide"
            at = "" if (port := link_of(sxid.line)) is None else f" at port {port}"
            yield Event(
                kind="sxid", status=sxid_status(sxid), bdf=sxid.bdf, code=str(sxid.number),
                text=f"SXid {sxid.number} ({text}){at}", seconds=sxid.seconds,
            )  # fmt: skip


def _more(xid: Xid) -> str:
    by = "" if xid.pid is None else f"pid {xid.pid}"
    return ", ".join(filter(None, (by, xid.process, xid.text)))


def _off_bus(log: KernelLog, past: bool) -> Iterator[Event]:
    """Without those that an Xid 79 announces."""
    announced = [(xid.bdf, xid.seconds) for xid in log.xids if xid.number == OFF_BUS]
    for lost in log.off_bus:
        near = any(bdf == lost.bdf and abs(seconds - lost.seconds) <= SAME_S for bdf, seconds in announced)
        if (past or not lost.past) and not (lost.xid or near):
            text = "GPU has fallen off the bus"
            yield Event(kind="off-bus", status=Status.FAIL, bdf=lost.bdf, text=text, seconds=lost.seconds)


_WHY: Mapping[str, str] = {"power": "power cables not connected", "none": "the driver found no GPU"}


def _devices(log: KernelLog, past: bool) -> Iterator[Event]:
    for gpu in log.not_started:
        if (past or not gpu.past) and gpu.why != "claimed":  # most GPUs of another driver were given to it
            why = _WHY.get(gpu.why, "the driver could not initialize the GPU")
            yield Event(kind="not-started", status=Status.FAIL, bdf=gpu.bdf or "", text=why, seconds=gpu.seconds)
    for hca in log.hcas:
        if past or not hca.past:
            module = "" if hca.module is None else f", module {hca.module}"
            status = Status.PASS if _as_it_is_set_up(hca, log) else hca_status(hca.trouble)
            yield Event(
                kind="hca", status=status, bdf=hca.bdf, code=hca.trouble,
                text=_cut(f"adapter: {hca.trouble}{module}: {hca.text}"), seconds=hca.seconds,
            )  # fmt: skip


def _pcie(log: KernelLog) -> Iterator[Event]:
    for error in log.pcie:
        worst = Status.WARN if error.past or error.severity == "nonfatal" else Status.FAIL
        bits = f" ({', '.join(error.names)})" if error.names else ""
        stuck = "; the kernel could not recover the device" if error.unrecovered else ""
        yield Event(
            kind="pcie-error", bdf=error.bdf, code=error.severity,
            status=Status.PASS if error.severity == "corrected" else worst,
            text=_cut(f"{error.severity} PCIe error{bits}{stuck}"), seconds=error.seconds, count=1 + error.more,
        )  # fmt: skip


def _host(log: KernelLog, past: bool) -> Iterator[Event]:
    for event in log.host:
        if (past or not event.past) and event.trouble not in _QUIET:
            part = event.part if event.trouble not in _OF_TASKS else ""
            yield Event(
                kind="host", status=_of_host(event, log), bdf=event.part if event.trouble == "unplugged" else "",
                code=f"{event.trouble}{f' {part}' if part else ''}"[:80], seconds=event.seconds,
                text=_cut(f"{event.trouble}: {event.line}"), count=max(1, event.count),
            )  # fmt: skip


def _of_host(event: HostEvent, log: KernelLog) -> Status:
    if event.trouble in ("memory", "machine check"):
        return Status.PASS if event.corrected else Status.WARN if event.past else Status.FAIL
    if _as_it_is_set_up(event, log):
        return Status.PASS
    return Status.FAIL if event.trouble in ("panic", "oops") else Status.WARN


def _as_it_is_set_up(event: HostEvent | HcaEvent, log: KernelLog) -> bool:
    """Is it a link that goes down in the first minutes after boot, and comes up again?"""
    return event.back and not isinstance(log.begins, Missing) and event.seconds <= COMES_UP_S


def _cut(text: str) -> str:
    return text[:TEXT_CHARACTERS]


def replayed(path: str) -> Iterator[ReportedEvent]:
    """In the order of the log, by its own clock. BadInput for what is no kernel log."""
    from dgxcheck.readers.kernel_log.excerpt import saved_log  # not needed by a watch that is live

    log = saved_log(path)
    if isinstance(facts := log_facts(relevant_lines(log)), Missing):
        raise BadInput(f"{path}: {facts}")
    ledger = Ledger()
    for event in log_events(facts, lambda bdf, code: 0):
        yield from (_logged(each, log.base) for each in ledger.take([event], event.seconds or 0.0, ""))
    yield from (_logged(each, log.base) for each in ledger.repeated(inf, ""))
    if log.cut:
        raise BadInput(f"{path}: {log.cut}")


def _logged(reported: ReportedEvent, base: float | None) -> ReportedEvent:
    """With the date of a log whose times do not count from boot."""
    if base is None or reported.event.seconds is None:
        return reported
    at = gmtime(base + reported.event.seconds)
    logged = strftime("%b %d %H:%M:%S" if at.tm_year < _DATED else "%Y-%m-%d %H:%M:%S", at)
    return replace(reported, logged=logged, event=replace(reported.event, seconds=None))
