"""What the kernel log tells of GPUs, NVSwitches and PCIe."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from dgxcheck.facts.kernel_log import KernelLog, OffBus, PcieError, Severity, SXid, Xid
from dgxcheck.reading import Gap, Missing
from dgxcheck.source.protocol import Source
from probes import aer_log_text, xid_text

DEVICE = "/dev/kmsg"
FALLEN = 79
RECOVERY = 154
SAME_S = 1.0
"""A port announces an error, and its details follow within this time."""
_MARK = "dgxcheck: log begins"

E = TypeVar("E", Xid, SXid, OffBus)
Lines = list[tuple[float, str]]


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
    resets = _resets(known)
    return KernelLog(
        where=where,
        begins=first if mark == _MARK else Missing(Gap.ABSENT, where, "its times do not count from boot"),
        xids=_once(_xids(known, resets)),
        sxids=_once(_sxids(known, resets)),
        off_bus=_once(_off_bus(known, resets)),
        pcie=tuple(_pcie(known)),
    )


def _once(events: Sequence[E]) -> tuple[E, ...]:
    return tuple({(each.bdf, each.seconds, each.line): each for each in events}.values())


def _timed(line: str) -> tuple[float, str] | None:
    seconds, _, message = line.partition(";")
    whole, dot, part = seconds.partition(".")
    digits = whole + part if dot else whole
    if not (digits.isascii() and digits.isdigit() and len(digits) < 20):
        return None
    return float(seconds), message


def _resets(lines: Lines) -> dict[str, int]:
    """Number of the line with which each GPU began anew; under ``""`` that of the driver's last load."""
    found = {"": -1}
    begun: int | None = None
    for number, (_, message) in enumerate(lines):
        if xid_text.begins_to_load(message):
            begun = number
        elif xid_text.loads(message):
            found[""] = number if begun is None else begun
            begun = None
        elif (bdf := xid_text.probed(message)) is not None:
            found[bdf] = number
        elif (said := xid_text.xid(message)) and said.number == RECOVERY and xid_text.RECOVERED in said.text:
            found[said.bdf] = number
    return found


def _past(number: int, bdf: str, resets: dict[str, int]) -> bool:
    return number < max(resets[""], resets.get(bdf, -1))


def _xids(lines: Lines, resets: dict[str, int]) -> list[Xid]:
    return [
        Xid(
            bdf=said.bdf, number=said.number, seconds=seconds, pid=said.pid, process=said.process, part=said.part,
            text=said.text, line=message, past=_past(number, said.bdf, resets),
        )
        for number, (seconds, message) in enumerate(lines)
        if (said := xid_text.xid(message)) is not None
    ]  # fmt: skip


def _sxids(lines: Lines, resets: dict[str, int]) -> list[SXid]:
    return [
        SXid(bdf=said[0], number=said[1], seconds=seconds, fatal=said[2], line=message,
             past=_past(number, said[0], resets))
        for number, (seconds, message) in enumerate(lines)
        if (said := xid_text.sxid(message)) is not None
    ]  # fmt: skip


def _off_bus(lines: Lines, resets: dict[str, int]) -> list[OffBus]:
    found = []
    named: str | None = None
    for number, (seconds, message) in enumerate(lines):
        said = xid_text.xid(message)
        named = xid_text.named(message) or named
        if said is not None and said.number == FALLEN:
            bdf: str | None = said.bdf
        elif xid_text.goes_on_off_bus(message):
            bdf, named = named, None
        else:
            bdf = xid_text.off_bus(message)
        if bdf is not None:
            past = _past(number, bdf, resets)
            found.append(OffBus(bdf=bdf, seconds=seconds, xid=said is not None, line=message, past=past))
    return found


def _pcie(lines: Lines) -> list[PcieError]:
    """Every error once: by its details, or by its announcement where no details followed."""
    found = []
    waiting: dict[Severity, PcieError] = {}
    for seconds, message in lines:
        if (told := aer_log_text.announced(message)) is not None:
            bdf, severity = told
            if severity in waiting:
                found.append(waiting[severity])
            waiting[severity] = PcieError(bdf=bdf, severity=severity, seconds=seconds, line=message)
        elif (told := aer_log_text.error(message)) is not None:
            bdf, severity = told
            before = waiting.pop(severity, None)
            if before is not None and seconds - before.seconds > SAME_S:
                found.append(before)
            found.append(PcieError(bdf=bdf, severity=severity, seconds=seconds, line=message))
    return sorted([*found, *waiting.values()], key=lambda each: each.seconds)
