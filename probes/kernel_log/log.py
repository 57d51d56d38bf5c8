"""Errors of GPUs, NVSwitches, HCAs, PCIe and the host in the kernel log."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Sequence
from math import inf
from typing import TypeVar

from dgxcheck.facts.bdf import unplaced
from dgxcheck.facts.kernel_log import (
    HcaEvent,
    HostEvent,
    IommuFault,
    KernelLog,
    NotStarted,
    OffBus,
    PcieError,
    Refused,
    Severity,
    SXid,
    Xid,
)
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.source.protocol import Source
from probes.kernel_log import (
    parse_aer,
    parse_crash,
    parse_earlier,
    parse_host,
    parse_iommu,
    parse_machine_check,
    parse_mlx5,
    parse_xid,
)

DEVICE = "/dev/kmsg"
FALLEN = 79
RECOVERY = 154
_OF_GSP = (119, 120)
SAME_S = 1.0
"""Within this time the details of an error follow its announcement by a port."""
LOAD_S = 2.0
"""Within this time the driver tries the GPUs and logs its version."""
_MARK = "dgxcheck: log begins"
_NO_TIMES = "dgxcheck: log begins, its lines have no times"

E = TypeVar("E", Xid, SXid, OffBus, NotStarted, HcaEvent, HostEvent)
Lines = list[tuple[float, str]]
Begins = dict[str, list[tuple[int, float]]]
"""Number and seconds of the lines at which each GPU was reset or taken over; under ``""`` the driver's loads."""


def probe(source: Source) -> KernelLog | Missing:
    """The kernel log as the source has it."""
    lines = source.kernel_log()
    return lines if isinstance(lines, Missing) else facts(lines, DEVICE)


def facts(lines: Sequence[str], where: str) -> KernelLog | Missing:
    """Lines as ``Source.kernel_log`` gives them; equal ones of one time count once, but for PCIe errors."""
    known = [each for each in map(_timed, lines) if each is not None]
    if not known:
        return Missing(Gap.GARBLED, where, "no line of it has a time")
    first, mark = known[0]
    begins = _begins(known)
    earlier = (parse_earlier.earlier(message) for _, message in known)
    return KernelLog(
        where=where,
        begins=first if mark == _MARK else Missing(Gap.ABSENT, where, "its times do not count from boot"),
        xids=_with_silent(_with_causes(_once(_xids(known, begins))), known, begins),
        sxids=_once(_sxids(known, begins)),
        off_bus=_once(_off_bus(known, begins)),
        pcie=tuple(_pcie(known)),
        not_started=_once(_not_started(known, begins)),
        refused=tuple(
            Refused(version=version, seconds=seconds, line=message, past=_past(number, "", begins))
            for number, (seconds, message) in enumerate(known)
            if (version := parse_xid.refused(message)) is not None
        ),
        hcas=_once(_hcas(known)),
        host=_once((*parse_machine_check.errors(known), *parse_host.events(known), *parse_crash.events(known))),
        iommu=tuple(
            IommuFault(bdf=bdf, seconds=seconds, line=message)
            for seconds, message in known
            if (bdf := parse_iommu.refused(message)) is not None
        ),
        earlier=tuple(each for each in earlier if each is not None),
        timed=mark != _NO_TIMES,
    )


def _once(events: Sequence[E]) -> tuple[E, ...]:
    return tuple({(each.seconds, each.line): each for each in events}.values())


def _timed(line: str) -> tuple[float, str] | None:
    seconds, _, message = line.partition(";")
    whole, dot, part = seconds.partition(".")
    digits = whole + part if dot else whole
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return None
    return float(seconds), message


def _begins(lines: Lines) -> Begins:
    begins: Begins = {}
    loading: int | None = None
    for number, (seconds, message) in enumerate(lines):
        name: str | None = None
        first = number
        if parse_xid.begins_to_load(message):
            loading = number
        elif parse_xid.loads(message):
            name, first, loading = "", _same_load(lines, number) if loading is None else loading, None
        elif (bdf := parse_xid.probed(message)) is not None:
            name = bdf
        elif (xid := parse_xid.xid(message)) and xid.number == RECOVERY and parse_xid.RECOVERED in xid.text:
            name = xid.bdf
        if name is not None:
            begins.setdefault(name, []).append((first, seconds))
    return begins


def _same_load(lines: Lines, number: int) -> int:
    """The first line of the load that names itself in a line, where an excerpt begins after the load's own first line:
    what comes before the result of its probe, which no driver that runs logs."""
    if not number or not parse_xid.failed_probe(lines[number - 1][1]):
        return number
    first = number
    while (
        first
        and lines[first - 1][1].startswith(("NVRM: ", "nvidia: ", "nvidia "))
        and lines[number][0] - lines[first - 1][0] < LOAD_S
    ):
        first -= 1
    return first


def _past(number: int, bdf: str, begins: Begins) -> bool:
    return any(number < begins[name][-1][0] for name in ("", bdf) if name in begins)


def _begun_s(number: int, bdf: str, begins: Begins) -> float:
    """Seconds of the last reset, take-over or driver load before a line; 0 where there is none."""
    places = ((name, bisect(begins.get(name, []), (number, inf))) for name in ("", bdf))
    return max((begins[name][place - 1][1] for name, place in places if place), default=0.0)


def _xids(lines: Lines, begins: Begins) -> list[Xid]:
    return [
        Xid(
            bdf=xid.bdf, number=xid.number, seconds=seconds, pid=xid.pid, process=xid.process, part=xid.part,
            text=xid.text, line=message, past=_past(number, xid.bdf, begins),
            begun_s=_begun_s(number, xid.bdf, begins),
        )
        for number, (seconds, message) in enumerate(lines)
        if (xid := parse_xid.xid(message)) is not None
    ]  # fmt: skip


def _with_causes(xids: tuple[Xid, ...]) -> tuple[Xid, ...]:
    """With the Xids that others name as their cause, where the log does not hold these, or not any more."""
    logged = {(xid.bdf, xid.number) for xid in xids}
    named = {(xid.bdf, cause) for xid in xids if (cause := parse_xid.cause(xid.text)) is not None}
    found: dict[tuple[str, int], Xid] = {}
    for xid in xids:
        cause = parse_xid.cause(xid.text)
        if cause is not None and (xid.bdf, cause) not in logged:
            found.setdefault(
                (xid.bdf, cause), replace(xid, number=cause, text="", pid=None, process="", ended_channel=True)
            )
    ended = (replace(xid, ended_channel=True) if (xid.bdf, xid.number) in named else xid for xid in xids)
    return (*ended, *found.values())


def _with_silent(xids: tuple[Xid, ...], lines: Lines, begins: Begins) -> tuple[Xid, ...]:
    """With a GPU whose system processor fell silent as Xid 119, where the log has no such Xid of any GPU."""
    if any(xid.number in _OF_GSP for xid in xids):
        return xids
    silent: dict[int, Xid] = {}
    for number, (seconds, message) in enumerate(lines):
        if (gpu := parse_xid.gsp_silent(message)) is not None:
            past = _past(number, unplaced(gpu), begins)
            silent[gpu] = Xid(
                bdf=unplaced(gpu), number=_OF_GSP[0], seconds=seconds, pid=None, process="", part="", text="",
                line=message, past=past,
            )  # fmt: skip
    return (*xids, *silent.values())


def _sxids(lines: Lines, begins: Begins) -> list[SXid]:
    return [
        SXid(bdf=sxid[0], number=sxid[1], seconds=seconds, fatal=sxid[2], line=message,
             past=_past(number, sxid[0], begins))
        for number, (seconds, message) in enumerate(lines)
        if (sxid := parse_xid.sxid(message)) is not None
    ]  # fmt: skip


def _off_bus(lines: Lines, begins: Begins) -> list[OffBus]:
    events = []
    named: str | None = None
    for number, (seconds, message) in enumerate(lines):
        xid = parse_xid.xid(message)
        named = parse_xid.named(message) or named
        if xid is not None and xid.number == FALLEN:
            bdf: str | None = xid.bdf
        elif parse_xid.goes_on_off_bus(message):
            bdf, named = named, None
        else:
            bdf = parse_xid.off_bus(message)
        if bdf is not None:
            past, begun_s = _past(number, bdf, begins), _begun_s(number, bdf, begins)
            events.append(
                OffBus(bdf=bdf, seconds=seconds, xid=xid is not None, line=message, past=past, begun_s=begun_s)
            )
    return events


def _not_started(lines: Lines, begins: Begins) -> list[NotStarted]:
    return [
        NotStarted(bdf=gpu[0], why=gpu[1], code=parse_xid.start_code(message), seconds=seconds, line=message,
                   past=_past(number, gpu[0] or "", begins))
        for number, (seconds, message) in enumerate(lines)
        if (gpu := parse_xid.not_started(message)) is not None
    ]  # fmt: skip


def _hcas(lines: Lines) -> list[HcaEvent]:
    last_start: dict[object, int] = {}
    for number, (_, message) in enumerate(lines):
        if (started := parse_mlx5.begins(message) or parse_mlx5.plugged(message)) is not None:
            last_start[started] = number
    return [
        HcaEvent(
            bdf=hca.bdf, trouble=hca.trouble, module=hca.module, text=hca.text, seconds=seconds, line=message,
            past=number < max(last_start.get(hca.bdf, -1), last_start.get((hca.bdf, hca.module), -1)),
        )
        for number, (seconds, message) in enumerate(lines)
        if (hca := parse_mlx5.trouble(message)) is not None
    ]  # fmt: skip


def _pcie(lines: Lines) -> list[PcieError]:
    """Each error once: by its details, or by its announcement where no details follow."""
    errors: list[PcieError] = []
    waiting: dict[Severity, PcieError] = {}
    last: dict[str, int] = {}
    for seconds, message in lines:
        if (announced := parse_aer.announced(message)) is not None:
            bdf, severity = announced
            if severity in waiting:
                errors.append(waiting[severity])
            waiting[severity] = PcieError(bdf=bdf, severity=severity, seconds=seconds, line=message)
        elif (detailed := parse_aer.error(message)) is not None:
            bdf, severity = detailed
            before = waiting.pop(severity, None)
            if before is not None and seconds - before.seconds > SAME_S:
                errors.append(before)
            last[bdf] = len(errors)
            errors.append(PcieError(bdf=bdf, severity=severity, seconds=seconds, line=message))
        elif (bit := parse_aer.error_bit(message)) is not None and bit[0] in last:
            error = errors[last[bit[0]]]
            if seconds - error.seconds <= SAME_S and bit[1] not in error.names:
                errors[last[bit[0]]] = replace(error, names=(*error.names, bit[1]))
        elif (lost := parse_aer.given_up(message)) is not None and lost in last:
            errors[last[lost]] = replace(errors[last[lost]], unrecovered=True)
    return sorted([*errors, *waiting.values()], key=lambda each: each.seconds)
