"""An Xid that came back after a reset or reboot: which steps that rules out.

Two reboots before hardware is blamed are gpud's rule. A GPU that fell off the bus keeps its cold power cycle: no log
tells one from a reboot, and no diagnostic can test a GPU that is lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.components.device_facts import row_of
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind, Step
from dgxcheck.facts.kernel_log import ANNOUNCES_RECOVERY, EARLIER_DAYS, OFF_BUS, EarlierXid, KernelLog, Xid
from dgxcheck.facts.nvml.readings import GpuEcc
from dgxcheck.facts.record import Record, remembered, replace
from dgxcheck.xid.relations import FATAL
from dgxcheck.xid.table import meaning

_OF_XIDS = (
    Fault.XID, Fault.RETIREMENT_FAILED, Fault.RESET_REQUIRED, Fault.REBOOT_REQUIRED, Fault.RECOVERY_REQUIRED
)  # fmt: skip
"""Faults of Xids for which there is a cure that can fail."""
_MENDED = (48, 95, 140, 171, 172)
"""Uncorrected memory errors: while a page waits to be retired, or a row to be remapped, the cure is still to come."""
_WINDOW_S = EARLIER_DAYS * 86400.0
_HARDWARE: tuple[Step, ...] = ("reseat", "field-diagnostic", "replace", "contact-vendor", "contact-host")


class Recurrence(Record):
    """One Xid of one GPU that came back, and what was done since it first occurred."""

    number: int
    reset: bool
    """The GPU was reset, or the driver loaded, within this boot."""
    reboots: int
    """Earlier boots that had it."""
    date: str
    """UTC, of the last of them; empty where that is not known."""
    skipped: tuple[Step, ...] = ()
    """Steps that this rules out; empty where it rules out none."""


def escalates(number: int, text: str) -> bool:
    """Is there a cure that can fail? Not of what is a program's fault, information, or cured by restarting the program.

    By NVIDIA's class of the number: those that ask for a reset, a restart or a look at the hardware.
    """
    severity = meaning(number, None).severity
    if severity == "text":
        return number != ANNOUNCES_RECOVERY and FATAL.search(text) is not None
    return number == OFF_BUS or severity in ("fail", "repeated")


def recurrence_of(box: Box, explained: Sequence[Finding]) -> Recurrence | None:
    """Of the Xids that findings report, the one against which most was tried; None where none came back.

    An uncorrected memory error whose page or row waits for the next reset is new, for that reset takes it away.
    """
    log = box.log
    reported = [(bdf, finding.judgement.fault) for finding in explained if (bdf := finding.subject.bdf) is not None]
    found = [
        _recurrence(box, log, bdf, number)
        for bdf, fault in reported for number in sorted(_numbers(log, fault, bdf))
        if number not in _MENDED or not _waits(box, bdf)
    ]  # fmt: skip
    tried = [recurrence for recurrence in found if recurrence.reset or recurrence.reboots]
    return max(tried, key=lambda recurrence: (recurrence.reboots, recurrence.reset), default=None)


def remaining_steps(steps: Sequence[Step], tried: Recurrence) -> tuple[tuple[Step, ...], Recurrence | None]:
    """The steps that are left, never none, and the recurrence with those it rules out; None where it rules out none."""
    off_bus = tried.number == OFF_BUS
    spent: set[Step] = {"reset-gpu"}
    if tried.reboots:
        spent |= {"reboot"}
    if tried.reboots > 1 and not off_bus:
        spent |= {"power-cycle"}
    left = tuple(step for step in steps if step not in spent)
    if tried.reboots < 2 and not off_bus and left[:1] and left[0] in _HARDWARE and "reboot" in steps:
        left = tuple(steps[steps.index("reboot") :])
    if not left or left == tuple(steps):
        return tuple(steps), None
    return left, replace(tried, skipped=tuple(step for step in steps if step not in left))


def _waits(box: Box, bdf: str) -> bool:
    row = row_of(box.snapshot.gpu_ecc, bdf)
    return isinstance(row, GpuEcc) and (row.retirement_pending is True or row.remap_pending is True)


def _numbers(log: KernelLog, fault: FaultKind | None, bdf: str) -> set[int]:
    """The Xids that a finding of this fault reports for the GPU since its last reset."""
    if fault not in _OF_XIDS:
        return {OFF_BUS} if fault is Fault.GPU_LOST else set()
    of_gpu = _by_gpu(log).get(bdf, {})
    return {number for number, xids in of_gpu.items() if number != OFF_BUS and any(not xid.past for xid in xids)}


@remembered(1)
def _by_gpu(log: KernelLog) -> dict[str, dict[int, list[Xid]]]:
    """The Xids that escalate, by bus id and number."""
    found: dict[str, dict[int, list[Xid]]] = {}
    for xid in log.xids:
        if escalates(xid.number, xid.text):
            found.setdefault(xid.bdf, {}).setdefault(xid.number, []).append(xid)
    return found


def _recurrence(box: Box, log: KernelLog, bdf: str, number: int) -> Recurrence:
    events = list(_events(log, bdf, number))
    now = [(seconds, begun_s) for seconds, begun_s, past in events if not past]
    first = min((seconds for seconds, _ in now), default=0.0)
    this = box.snapshot.known_host.boot_id
    alike = [xid for xid in log.earlier if xid.number == number and escalates(number, xid.text)]
    own = [xid for xid in alike if _is_of(box, xid, bdf)]
    here, before = ([xid for xid in own if (xid.boot == this) is same] for same in (True, False))
    past = any(past and first - seconds <= _WINDOW_S for seconds, _, past in events)
    return Recurrence(
        number=number,
        reset=past or any(begun_s > xid.begun_s for xid in here for _, begun_s in now),
        reboots=max(0, len({xid.boot for xid in before}) - (not now)),
        date=max((xid.date for xid in before), default=""),
    )


def _events(log: KernelLog, bdf: str, number: int) -> Iterator[tuple[float, float, bool]]:
    """Of each event: its time, the last start of the GPU before it (both in seconds since boot), and whether the GPU
    was started again since.
    """
    for event in log.off_bus if number == OFF_BUS else ():
        if event.bdf == bdf:
            yield event.seconds, event.begun_s, event.past
    for xid in _by_gpu(log).get(bdf, {}).get(number, ()):
        yield xid.seconds, xid.begun_s, xid.past


def _is_of(box: Box, seen: EarlierXid, bdf: str) -> bool:
    """By UUID, or by the bus id where one of the two is not known: a lost GPU does not tell its."""
    gpu = box.topology.device(bdf)
    uuid = None if gpu is None else gpu.uuid
    return seen.uuid == uuid if seen.uuid and isinstance(uuid, str) else seen.bdf == bdf
