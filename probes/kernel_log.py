"""Errors of GPUs, NVSwitches, HCAs, PCIe and the host in the kernel log."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from math import inf
from typing import Any, TypeVar

from dgxcheck.facts.bdf import nameless, unplaced
from dgxcheck.facts.kernel_log import (
    ANNOUNCES_RECOVERY,
    FORGEABLE,
    MARK,
    NO_TIMES,
    OFF_BUS,
    DriverError,
    HcaEvent,
    HostEvent,
    KernelLog,
    ModuleRefused,
    NotStarted,
    OffBus,
    PcieError,
    Refused,
    SXid,
    Xid,
)
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.kernel_messages import gpu, hca, host, memory, pcie, storage
from dgxcheck.kernel_messages.driver_errors import driver_error
from dgxcheck.kernel_messages.form import Lines, host_event
from dgxcheck.kernel_messages.forms import LEFT_OUT, by_subject, earlier
from dgxcheck.limits import LOG_GPUS
from dgxcheck.source.protocol import Source

DEVICE = "/dev/kmsg"
_NEAR_S = 30.0
LOAD_S = 2.0
"""Within this time the driver tries the GPUs and logs its version."""
_FEW_LINES_S = 4 * 3600.0
"""As near as that where the lines have no times: they are an hour apart."""
T = TypeVar("T")
D = TypeVar("D", Xid, SXid)
E = TypeVar("E", Xid, SXid, OffBus, NotStarted, HcaEvent, HostEvent)
Begins = dict[str, list[tuple[int, float]]]
"""Number and seconds of the lines at which each GPU was reset or taken over; under ``""`` the driver's loads."""


def kernel_log(source: Source) -> KernelLog | Missing:
    """The kernel log as the source has it."""
    lines = source.kernel_log()
    return lines if isinstance(lines, Missing) else facts(lines, DEVICE)


def facts(lines: Sequence[str], where: str) -> KernelLog | Missing:
    """Lines as ``Source.kernel_log`` gives them; equal ones of one time count once, but for PCIe errors."""
    with_time = [each for each in map(_timed, lines) if each is not None]
    if not with_time:
        return Missing(Gap.GARBLED, where, "no line of it has a time")
    (first, mark), of = with_time[0], by_subject(with_time)
    of_driver, begins = of[gpu], _begins(of[gpu])
    nvlinks = [host_event(trouble, "", seconds, message, past=_past(number, "", begins))
               for number, (seconds, message) in enumerate(of_driver)
               if (trouble := gpu.nvlink_trouble(message)) is not None]  # fmt: skip
    events = (
        memory.errors(of[memory], of_driver), storage.events(of[storage]), host.events(of[host]),
        pcie.unplugged(of[pcie]), pcie.untrained(of[pcie]), nvlinks, pcie.unusable(of[pcie], begins),
    )  # fmt: skip
    errors = sorted((*pcie.errors(of[pcie]), *memory.pcie_errors(of[memory])), key=lambda error: error.seconds)
    off_bus = _once(_off_bus(of_driver, begins))
    left_out = [(int(match[1]), match[2]) for _, message in with_time if (match := LEFT_OUT.fullmatch(message))]
    all_xids, all_sxids = _once(_xids(of_driver, begins)), _once(_sxids(of_driver, begins))
    judged, sxids = _of_last_named(all_xids), _of_last_named(all_sxids)
    xids = _with_causes(_with_more(judged, left_out))
    timed = mark != NO_TIMES
    unnumbered = _unnumbered(xids, of_driver, begins, _NEAR_S if timed else _FEW_LINES_S)
    gpu.xid.cache_clear()  # who watches for months keeps none of them
    return KernelLog(
        where=where,
        begins=first if mark == MARK else Missing(Gap.ABSENT, where, "its times do not count from boot"),
        xids=(*xids, *(xid for xid in unnumbered if xid.number != OFF_BUS)),
        sxids=sxids,
        off_bus=off_bus or tuple(
            OffBus(bdf=xid.bdf, seconds=xid.seconds, xid=False, line=xid.line, past=xid.past)
            for xid in unnumbered if xid.number == OFF_BUS
        ),
        pcie=_errors_with_more(errors, left_out),
        not_started=_once(_not_started(of_driver, begins, LOAD_S if timed else _FEW_LINES_S)),
        refused=tuple(
            Refused(version=version, module=module or gpu.module_version(of_driver[number + 1 :]), fabric=fabric, **at)
            for number, (version, module, fabric), at in _found_at(of_driver, gpu.refused, begins)
        ),
        modules=tuple(
            ModuleRefused(module=module, why=why, **at)
            for _, (module, why), at in _found_at(of_driver, gpu.module_refused, begins)
        ),
        hcas=_once(hca.events(of[hca])),
        host=_once(sorted(chain(*events), key=lambda event: event.seconds)),
        iommu=tuple(pcie.iommu_faults(of[pcie])),
        driver_errors=tuple(
            DriverError(driver=driver, bdf=bdf, **at)
            for lines, places in ((of_driver, begins), (of[hca], _taken_over(of[hca])))
            for _, (driver, bdf), at in _found_at(lines, driver_error, places, lambda found: found[1])
        ),
        earlier=tuple(each for _, message in with_time if (each := earlier(message)) is not None),
        in_use_s=max((seconds for seconds, message in of_driver if gpu.FORMS.match("in use", message)), default=-1.0),
        timed=timed,
        cut="" if (judged, sxids) == (all_xids, all_sxids) else f"Xids of more than {LOG_GPUS} GPUs or NVSwitches",
        forgeable=any(message == FORGEABLE for _, message in with_time),
    )


def _once(events: Sequence[E]) -> tuple[E, ...]:
    of_whom = ((each.part if isinstance(each, HostEvent) else each.bdf, each) for each in events)  # a line may not say
    return tuple({(each.seconds, each.line, whose): each for whose, each in of_whom}.values())


def _of_last_named(events: tuple[D, ...]) -> tuple[D, ...]:
    """Of as many devices as one machine can have: what is judged of a device looks at all the others."""
    named: list[str] = [*{event.bdf: None for event in events[::-1]}]
    kept = {*named[:LOG_GPUS]}
    return events if len(kept) == len(named) else tuple(event for event in events if event.bdf in kept)


def _timed(line: str) -> tuple[float, str] | None:
    seconds, _, message = line.partition(";")
    whole, dot, part = seconds.partition(".")
    digits = whole + part if dot else whole
    is_time = digits.isascii() and digits.isdigit() and len(digits) < 20
    return (float(seconds), message) if is_time else None


def _begins(lines: Lines) -> Begins:
    begins: Begins = {}
    loading: int | None = None
    for number, (seconds, message) in enumerate(lines):
        name, first = gpu.probed(message), number
        if gpu.FORMS.match("loading", message):
            loading = number
        elif gpu.FORMS.match("loaded", message):
            name, first, loading = "", _same_load(lines, number) if loading is None else loading, None
        elif (xid := gpu.xid(message)) and xid.number == ANNOUNCES_RECOVERY and gpu.RECOVERED in xid.text:
            name = xid.bdf
        if name is not None:
            begins.setdefault(name, []).append((first, seconds))
    return begins


def _taken_over(lines: Lines) -> Begins:
    """As of GPUs, when its driver took over each HCA."""
    return gathered((bdf, (number, seconds)) for number, seconds, _, bdf in _found(lines, hca.begins))


def _same_load(lines: Lines, number: int) -> int:
    """The first line of the load that names itself in a line, where an excerpt begins after the load's own first line:
    what comes before the result of its probe, which no driver that runs logs."""
    if not number or not gpu.FORMS.match("probe failed", lines[number - 1][1]):
        return number
    first = number
    while (first and lines[first - 1][1].startswith(("NVRM: ", "nvidia: ", "nvidia "))
            and lines[number][0] - lines[first - 1][0] < LOAD_S):  # fmt: skip
        first -= 1
    return first


def _past(number: int, bdf: str, begins: Begins) -> bool:
    return any(number < begins[name][-1][0] for name in ("", bdf) if name in begins)


def _begun_s(number: int, bdf: str, begins: Begins) -> float:
    """Seconds of the last reset, take-over or driver load before a line; 0 where there is none."""
    places = ((name, bisect(begins.get(name, []), (number, inf))) for name in ("", bdf))
    return max((begins[name][place - 1][1] for name, place in places if place), default=0.0)


def _found(lines: Lines, read: Callable[[str], T | None]) -> Iterator[tuple[int, float, str, T]]:
    """Number, seconds and message of the lines in which something is read, and what."""
    for number, (seconds, message) in enumerate(lines):
        if (found := read(message)) is not None:
            yield number, seconds, message, found


def _found_at(
    lines: Lines, read: Callable[[str], T | None], begins: Begins, whose: Callable[[T], str] = lambda found: ""
) -> Iterator[tuple[int, T, dict[str, Any]]]:
    """Number of each such line, what is read in it, and what every event of a line has; ``whose`` is its bus id."""
    for number, seconds, message, found in _found(lines, read):
        yield number, found, {"seconds": seconds, "line": message, "past": _past(number, whose(found), begins)}


def _xids(lines: Lines, begins: Begins) -> list[Xid]:
    return [Xid(bdf=xid.bdf, number=xid.number, pid=xid.pid, process=xid.process, part=xid.part, text=xid.text,
                begun_s=_begun_s(number, xid.bdf, begins), **at)
            for number, xid, at in _found_at(lines, gpu.xid, begins, lambda xid: xid.bdf)]  # fmt: skip


def _with_more(xids: tuple[Xid, ...], left_out: Sequence[tuple[int, str]]) -> tuple[Xid, ...]:
    """The first Xid of each number and GPU with how many more were logged before it."""
    more = {(xid.bdf, xid.number): count for count, message in left_out if (xid := gpu.xid(message)) is not None}
    return tuple(replace(xid, more=more.pop((xid.bdf, xid.number), 0)) for xid in xids) if more else xids


def _errors_with_more(errors: Sequence[PcieError], left_out: Sequence[tuple[int, str]]) -> tuple[PcieError, ...]:
    more = {(error.bdf, error.severity): count
            for count, message in left_out for error in pcie.errors([(0.0, message)])}  # fmt: skip
    return tuple(replace(each, more=more.pop((each.bdf, each.severity), 0)) for each in errors) if more else (*errors,)


def _with_causes(xids: tuple[Xid, ...]) -> tuple[Xid, ...]:
    """With the Xids that others name as their cause, where the log does not hold these, or not any more."""
    logged = {(xid.bdf, xid.number) for xid in xids}
    named: dict[tuple[str, int], Xid] = {}
    for xid in xids:
        if (cause := gpu.cause(xid.text)) is not None:
            named.setdefault((xid.bdf, cause), xid)
    ended = (replace(xid, ended_channel=True) if (xid.bdf, xid.number) in named else xid for xid in xids)
    causes = (replace(xid, number=cause, text="", pid=None, process="", ended_channel=True)
              for (bdf, cause), xid in named.items() if (bdf, cause) not in logged)  # fmt: skip
    return (*ended, *causes)


def _unnumbered(xids: tuple[Xid, ...], lines: Lines, begins: Begins, near_s: float) -> list[Xid]:
    """What the driver says without an Xid, as one, where the log has no Xid, of any GPU, that says it.

    A line without the number of its GPU is of the GPU that alone has an Xid so near.
    """
    logged = {xid.number for xid in xids}
    found: dict[tuple[int, int], Xid] = {}
    for number, seconds, message, (place, counts_as, text) in _found(lines, gpu.unnumbered):
        if gpu.is_news(counts_as, logged):
            near = {xid.bdf for xid in xids if abs(xid.seconds - seconds) <= near_s} if place < 0 else set()
            bdf = near.pop() if len(near) == 1 else nameless(0) if place < 0 else unplaced(place)
            found[place, counts_as] = Xid(
                bdf=bdf, number=counts_as, seconds=seconds, pid=None, process="", part="", text=text, line=message,
                past=_past(number, bdf, begins),
            )  # fmt: skip
    if any(number != ANNOUNCES_RECOVERY for _, number in found):  # from which the reset follows
        found = {key: xid for key, xid in found.items() if key[1] != ANNOUNCES_RECOVERY}
    return [xid for (place, _), xid in found.items() if place >= 0] or [*found.values()]


def _sxids(lines: Lines, begins: Begins) -> list[SXid]:
    found = _found_at(lines, gpu.sxid, begins, lambda sxid: sxid[0])
    return [SXid(bdf=bdf, number=sxid, fatal=fatal, **at) for _, (bdf, sxid, fatal), at in found]


def _off_bus(lines: Lines, begins: Begins) -> list[OffBus]:
    events = []
    named: str | None = None
    for number, (seconds, message) in enumerate(lines):
        xid = gpu.xid(message)
        if (device := gpu.named(message)) is not None:
            named = device[0]
        if xid is not None and xid.number == OFF_BUS:
            bdf: str | None = xid.bdf
        elif gpu.FORMS.match("goes on off bus", message):
            bdf, named = named, None
        else:
            bdf = gpu.off_bus(message)
        if bdf is not None:
            past, begun_s, of_xid = _past(number, bdf, begins), _begun_s(number, bdf, begins), xid is not None
            events.append(OffBus(bdf=bdf, seconds=seconds, xid=of_xid, line=message, past=past, begun_s=begun_s))
        elif events and (fallen := gpu.fallen_serial(message)) is not None and fallen[0] in (None, events[-1].bdf):
            events[-1] = replace(events[-1], serial=fallen[1])
    return events


def _not_started(lines: Lines, begins: Begins, near_s: float) -> list[NotStarted]:
    """The driver says why in one line, or in those after one that names the GPU."""
    events = []
    named: tuple[str | None, int] = None, 0
    for number, (seconds, message) in enumerate(lines):
        named = gpu.named(message) or named
        after = lines[number + 1][1] if number + 1 < len(lines) else ""
        if (why := gpu.goes_on_not_started(message, named[1], after)) is not None:
            (bdf, _), named = named, (None, 0)
        elif (found := gpu.not_started(message)) is not None:
            bdf, why = found
        else:
            continue
        past, code = _past(number, bdf or "", begins), gpu.start_code(message)
        events.append(NotStarted(bdf=bdf, why=why, code=code, seconds=seconds, line=message, past=past))
    if any(event.why == "given" for event in events):  # then a line that names none can be about that one
        events = [event for event in events if event.bdf is not None or event.why != "claimed"]
    return [event for event in _of_next_named(events, near_s) if event.why != "given"]


def _of_next_named(events: Sequence[NotStarted], near_s: float) -> Iterator[NotStarted]:
    """What lines without a GPU give as the reason is that of the GPU that fails to start at once after them, and says
    more than the status of its call."""
    waiting: list[NotStarted] = []
    for event in events:
        if waiting and event.seconds - waiting[-1].seconds >= near_s:
            yield from waiting
            waiting = []
        if event.bdf is None:
            waiting.append(event)
            continue
        yield replace(event, why=next((each.why for each in waiting if each.why), event.why))
        waiting = []
    yield from waiting
