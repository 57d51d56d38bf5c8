"""What Xids and SXids say: fault, status, and what several of them together mean."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from dgxcheck.checks.engine.finding import Judgement, LogEvent, Status, counted
from dgxcheck.checks.engine.growth import DAY_S
from dgxcheck.checks.kernel_log.device_log import lines, reach
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import ANNOUNCES_RECOVERY, KernelLog, SXid, Xid, is_near
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.xid.relations import FATAL, WINDOW_S, Recovery, link_of, recovery_of, sxid_fault, sxid_response, xid_fault
from dgxcheck.xid.table import REMEDIES, Response, XidEntry, decoded, sxids

_NOT_FATAL = LazyPattern(r"\bnon-?fatal\b", flags=re.IGNORECASE)
"""In the lines of NVLink 5 units: ``149, NETIR_LINK_DOWN Nonfatal XC0 i0 Link 17 (0x..)``."""
_OF_RECOVERY: Mapping[Recovery, FaultKind] = {
    "gpu-reset": Fault.RESET_REQUIRED,
    "node-reboot": Fault.REBOOT_REQUIRED,
    "drain-p2p": Fault.DRAIN_REQUIRED,
    "drain-and-reset": Fault.DRAIN_AND_RESET,
    "imex": Fault.IMEX_RECOVERY,
}
_RESETS: frozenset[Recovery] = frozenset({"none", "gpu-reset", "drain-p2p", "drain-and-reset"})
_OF_AN_END: frozenset[Response] = frozenset({"nvlink-peer", "nvlink-signal", "nvlink-off"})


def response_of(entry: XidEntry, text: str) -> Response:
    """What to do first about one Xid: of NVLink 5 as the words of its line say; one that is not fatal is watched."""
    if (decoded_response := decoded(entry.number, text)) is not None:
        return decoded_response[0]
    return "watch" if entry.severity == "text" and _NOT_FATAL.search(text) else entry.response


def most_drastic(responses: Iterable[Response]) -> Response:
    """In the order of ``REMEDIES``; at least one is given."""
    return min(responses, key=[*REMEDIES].index)


def asked_for(entries: Iterable[tuple[XidEntry, str]]) -> tuple[Response, FaultKind]:
    """Of Xids with the texts of their lines, what the one that asks for most asks for; at least one is given.

    A reset that the driver announces belongs to the NVLink error that says from which end it comes.
    """
    pairs = [*entries]
    responses = {response_of(entry, text) for entry, text in pairs}
    announced = {recovery_of(text) for entry, text in pairs if entry.number == ANNOUNCES_RECOVERY}
    if responses & _OF_AN_END and announced <= _RESETS:
        responses.discard("recovery")
    response = most_drastic(responses)
    return response, _fault(response, pairs)


def fault_of(entries: Iterable[tuple[XidEntry, str]]) -> FaultKind:
    return asked_for(entries)[1]


def _fault(response: Response, pairs: Sequence[tuple[XidEntry, str]]) -> FaultKind:
    if response == "recovery":
        last = [text for entry, text in pairs if entry.number == ANNOUNCES_RECOVERY][-1]
        return _OF_RECOVERY.get(recovery_of(last), Fault.RECOVERY_REQUIRED)
    return xid_fault(response)


def xid_status(entry: XidEntry, text: str, times: int, ended_channel: bool = False) -> Status:
    """``text`` is what its line says after the number, ``times`` how often it was logged by now.

    An Xid that ended a program's channel was fatal, whatever its own line says.
    """
    if entry.severity in ("application", "information"):
        return Status.PASS
    if entry.severity == "repeated":
        return Status.FAIL if times > 1 else Status.WARN
    if entry.number == ANNOUNCES_RECOVERY:
        recovery = recovery_of(text)
        return Status.PASS if recovery == "none" else Status.WARN if recovery == "drain-p2p" else Status.FAIL
    words = decoded(entry.number, text)
    if words is not None and words[1]:  # no action is due, whatever the line calls it
        return Status.PASS if words[0] == "none" else Status.WARN
    if entry.severity == "text":
        return Status.FAIL if ended_channel or FATAL.search(text) else Status.WARN
    return Status.FAIL if entry.severity == "fail" else Status.WARN


_CONTAINED = 94
_UNCORRECTABLE = frozenset({48, 171, 172})
"""Uncorrectable memory errors; whether one is contained, 94 or 95 says."""
_SEVERAL = 3
"""So many programs are unlikely to be faulty each."""


def contained(xids: Sequence[Xid], entries: Mapping[int, XidEntry]) -> Mapping[int, XidEntry]:
    """Memory errors that stopped one program alone, as each has an Xid 94 beside it: they ask for what that asks for.

    https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html, error containment
    """
    known_contained = entries.get(_CONTAINED)
    if known_contained is None:
        return {}
    times = [xid.seconds for xid in xids if xid.number == _CONTAINED]
    return {
        number: replace(entries[number], severity=known_contained.severity, response=known_contained.response)
        for number in _UNCORRECTABLE & entries.keys()
        if all(is_near(xid.seconds, times, WINDOW_S) for xid in xids if xid.number == number)
    }


def processes_of(xids: Sequence[Xid]) -> int:
    """The most processes that had an Xid within one day; an Xid without a process counts for none."""
    of_process = sorted((xid for xid in xids if xid.pid), key=lambda xid: xid.seconds)
    day: Counter[object] = Counter()
    end = most = 0
    for first in of_process:
        while end < len(of_process) and of_process[end].seconds - first.seconds < DAY_S:
            day[of_process[end].pid] += 1
            end += 1
        most = max(most, len(day))
        day[first.pid] -= 1
        if not day[first.pid]:
            del day[first.pid]
    return most


def fail_here_alone(log: KernelLog, bdf: str, xids: Sequence[Xid]) -> bool:
    """Do programs of several names fail on this GPU and on no other? A single program is probably faulty itself."""
    here = {xid.process for xid in xids if xid.process}
    elsewhere = {xid.process for xid in log.xids if xid.bdf != bdf}
    return len(here - elsewhere) >= _SEVERAL


FAULTS = (Fault.NVSWITCH, Fault.NVSWITCH_FATAL, Fault.NVSWITCH_NOTICE, Fault.NVSWITCH_WATCHED)
WORST = (Status.FAIL, Status.WARN, Status.PASS)


def judge_sxids(log: KernelLog, all_times: Sequence[SXid]) -> Judgement:
    """Of one NVSwitch."""
    now = [sxid for sxid in all_times if not sxid.past]
    if not now:
        history = f"{counted(len(all_times), 'SXid')} before the driver was last loaded"
        return Judgement(Status.PASS, f"{history}{reach(log)}")
    worst = min(map(sxid_status, now), key=WORST.index)
    reported = [sxid for sxid in now if sxid_status(sxid) is worst]
    by_number = sorted(gathered((sxid.number, sxid) for sxid in reported).items())
    numbers = ", ".join(f"{number} ({_text(number)}){_times(own)}" for number, own in by_number)
    ports = sorted({port for sxid in reported if (port := link_of(sxid.line)) is not None})
    at = f" at port{'s' * (len(ports) > 1)} {', '.join(map(str, ports))}" if ports else ""
    message = f"NVSwitch: {'fatal ' if worst is Status.FAIL else ''}SXid {numbers}{at}{reach(log)}"
    if worst is Status.PASS:
        return Judgement(worst, message, evidence=lines(log, reported))
    response = most_drastic(sxid_response(sxid.number, sxid.fatal) for sxid in reported)
    events = tuple(LogEvent(sxid.seconds, "nvswitch", sxid.number, link_of(sxid.line)) for sxid in reported)
    return Judgement(
        worst, message, len(now), None, "SXids", lines(log, reported), fault=sxid_fault(response),
        remedy=REMEDIES[response], events=events,
    )  # fmt: skip


def _times(sxids_alike: Sequence[SXid]) -> str:
    """`` 3 times``: the lines that say how grave it is; those with its severity and data in figures follow these."""
    times = sum(sxid.fatal is not None for sxid in sxids_alike) or len(sxids_alike)
    return f" {times} times" if times > 1 else ""


def sxid_status(sxid: SXid) -> Status:
    """By what the line says, and where it does not say, or says non-fatal, by the guide's table."""
    entry = sxids().get(sxid.number)
    if sxid.fatal or (sxid.fatal is None and entry is not None and entry.severity == "fail"):
        return Status.FAIL
    return Status.PASS if entry is not None and entry.severity == "information" else Status.WARN


def _text(number: int) -> str:
    entry = sxids().get(number)
    return entry.text if entry is not None else "not in NVIDIA's guide"
