"""An Xid that is there again although what cures it was done: how much of a ladder of actions that spends.

Two reboots before hardware is blamed are gpud's rule; a GPU that fell off the bus is there already after one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

from dgxcheck.checks.engine.check import Box, row_of
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.kernel_log.xid_catalogue import FATAL, meaning
from dgxcheck.facts.gpu import GpuEcc
from dgxcheck.facts.host import Host
from dgxcheck.facts.kernel_log import EARLIER_DAYS, EarlierXid, KernelLog
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record

FALLEN = 79
_ANNOUNCES = 154
"""Says what another Xid asks for."""
_MENDED = (48, 95, 140, 171, 172)
"""Uncorrected memory errors: while a page waits to be retired, or a row to be remapped, the cure is still to come."""
_WINDOW_S = EARLIER_DAYS * 86400.0
_OF_GPU = ("kernel.xid", "kernel.off-bus", "gpu.lost")
_HARDWARE = ("reseat or cable", "replace")
S = TypeVar("S", bound=str)


class Again(Record):
    """One Xid of one GPU, and what happened since it was there before."""

    number: int
    reset: bool
    """The GPU was reset, or the driver loaded, within this boot."""
    reboots: int
    """Earlier boots that had it."""
    date: str
    """UTC, of the last of them; empty where that is not known."""


def escalates(number: int, text: str) -> bool:
    """Is there a cure that can fail? Not of what is a program's fault, information, or cured by restarting the program.

    By NVIDIA's class of the number: those that ask for a reset, a restart or a look at the hardware.
    """
    severity = meaning(number, None).severity
    if severity == "wording":
        return number != _ANNOUNCES and FATAL.search(text) is not None
    return number == FALLEN or severity in ("fail", "repeated")


def again(box: Box, explained: Sequence[Finding]) -> Again | None:
    """Of the Xids that the findings speak of, the one against which most was tried; None for the first time.

    An uncorrected memory error whose page or row waits for the next reset is new, for that reset takes it away.
    """
    log = box.snapshot.kernel_log
    if isinstance(log, Missing):
        return None
    found = [
        _again(box, log, finding.subject.bdf, number)
        for finding in explained
        if finding.id in _OF_GPU and finding.subject.bdf is not None
        for number in sorted(_numbers(log, finding.id, finding.subject.bdf))
        if number not in _MENDED or not _waits(box, finding.subject.bdf)
    ]
    tried = [each for each in found if each.reset or each.reboots]
    return max(tried, key=lambda each: (each.reboots, each.reset), default=None)


def beyond(ladder: Sequence[S], tried: Again) -> tuple[tuple[S, ...], str]:
    """The rungs that are left, never none, and in words why; without words where all are left."""
    lost = tried.number == FALLEN
    spent = {"stop job", "reset GPU"}
    if tried.reboots:
        spent |= {"reboot"}
    if tried.reboots > (0 if lost else 1):
        spent |= {"power-cycle cold"}
    left = tuple(step for step in ladder if step not in spent)
    if tried.reboots < 2 and not lost and left[:1] and left[0] in _HARDWARE and "reboot" in ladder:
        left = tuple(ladder[ladder.index("reboot") :])
    if not left or left == tuple(ladder):
        return tuple(ladder), ""
    return left, _words(tried, lost, "reboot" in left)


def _words(tried: Again, lost: bool, once_more: bool) -> str:
    """``Xid 62 again after a reboot (seen before at 2026-11-20T10:00:00Z): reset and reboot did not cure it``"""
    what = "off the bus" if lost else f"Xid {tried.number}"
    if not tried.reboots:
        return f"{what} again after a reset or driver load: that did not cure it"
    seen = f" (seen before at {tried.date})" if tried.date else ""
    after = f"{what} again after {'a reboot' if tried.reboots == 1 else f'{tried.reboots} reboots'}"
    if lost:
        return f"{after} or power cycle{'' if tried.reboots == 1 else 's'}{seen}: that did not cure it"
    if tried.reboots > 1:
        return f"{after}{seen}: reset and reboots did not cure it, which points to hardware"
    return f"{after}{seen}: {'the reset in it' if once_more else 'reset and reboot'} did not cure it"


def _waits(box: Box, bdf: str) -> bool:
    row = row_of(box.snapshot.gpu_ecc, bdf)
    return isinstance(row, GpuEcc) and (row.retirement_pending is True or row.remap_pending is True)


def _numbers(log: KernelLog, check: str, bdf: str) -> set[int]:
    """Those that the GPU has now."""
    if check != "kernel.xid":
        return {FALLEN}
    return {
        xid.number
        for xid in log.xids
        if xid.bdf == bdf and not xid.past and xid.number != FALLEN and escalates(xid.number, xid.text)
    }


def _again(box: Box, log: KernelLog, bdf: str, number: int) -> Again:
    events = list(_events(log, bdf, number))
    now = [(seconds, begun_s) for seconds, begun_s, past in events if not past]
    first = min((seconds for seconds, _ in now), default=0.0)
    host = box.snapshot.host
    this = host.boot_id if isinstance(host, Host) else host
    known = [
        each
        for each in log.earlier
        if each.number == number and escalates(number, each.text) and _is_of(box, each, bdf)
    ]
    here = [each for each in known if each.boot == this]
    before = [each for each in known if each.boot != this]
    past = any(past and first - seconds <= _WINDOW_S for seconds, _, past in events)
    return Again(
        number=number,
        reset=past or any(begun_s > each.begun_s for each in here for _, begun_s in now),
        reboots=len({each.boot for each in before}),
        date=max((each.date for each in before), default=""),
    )


def _events(log: KernelLog, bdf: str, number: int) -> Iterator[tuple[float, float, bool]]:
    """When, when the GPU had begun before that, and whether it has begun anew since."""
    for each in log.off_bus if number == FALLEN else ():
        if each.bdf == bdf:
            yield each.seconds, each.begun_s, each.past
    for xid in log.xids:
        if xid.bdf == bdf and xid.number == number and escalates(number, xid.text):
            yield xid.seconds, xid.begun_s, xid.past


def _is_of(box: Box, seen: EarlierXid, bdf: str) -> bool:
    """By UUID, or by the bus id where one of the two is not known: a lost GPU does not tell its."""
    gpu = next((gpu for gpu in box.topology.gpus if gpu.bdf == bdf), None)
    uuid = None if gpu is None else gpu.uuid
    return seen.uuid == uuid if seen.uuid and isinstance(uuid, str) else seen.bdf == bdf
