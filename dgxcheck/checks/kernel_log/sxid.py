"""SXids of NVSwitches in the kernel log."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.checks.engine.finding import Judgement, LogEvent, Status
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.kernel_log.device_log import lines, reach
from dgxcheck.checks.kernel_log.xid_fault import OF_RESPONSE, most_drastic
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import KernelLog, SXid
from dgxcheck.xid.entry import REMEDIES, Response
from dgxcheck.xid.line import link_of
from dgxcheck.xid.table import sxids

FAULTS = (Fault.NVSWITCH, Fault.NVSWITCH_FATAL, Fault.NVSWITCH_NOTICE, Fault.NVSWITCH_WATCHED)
_WORST = (Status.FAIL, Status.WARN, Status.PASS)


def judge_sxids(log: KernelLog, all_times: Sequence[SXid]) -> Judgement:
    """Of one NVSwitch."""
    now = [each for each in all_times if not each.past]
    if not now:
        history = f"{counted(len(all_times), 'SXid')} before the driver was last loaded"
        return Judgement(Status.PASS, f"{history}{reach(log)}")
    worst = min(map(sxid_status, now), key=_WORST.index)
    reported = [each for each in now if sxid_status(each) is worst]
    numbers = ", ".join(f"{number} ({_text(number)})" for number in sorted({each.number for each in reported}))
    ports = sorted({port for each in reported if (port := link_of(each.line)) is not None})
    at = f" at port{'s' * (len(ports) > 1)} {', '.join(map(str, ports))}" if ports else ""
    message = f"NVSwitch: {'fatal ' if worst is Status.FAIL else ''}SXid {numbers}{at}{reach(log)}"
    if worst is Status.PASS:
        return Judgement(worst, message, evidence=lines(log, reported))
    response = most_drastic(map(_response, reported))
    return Judgement(
        worst, message, len(now), None, "SXids", lines(log, reported), fault=sxid_fault(response),
        remedy=REMEDIES[response],
        events=tuple(LogEvent(each.seconds, "nvswitch", each.number, link_of(each.line)) for each in reported),
    )  # fmt: skip


def sxid_fault(response: Response) -> FaultKind:
    """The fault of an NVSwitch by what the table asks for."""
    fault = OF_RESPONSE[response]
    return Fault.NVSWITCH_WATCHED if fault is Fault.XID_NOTICE else fault


def sxid_status(sxid: SXid) -> Status:
    """By what the line says, and where it does not say, or says non-fatal, by the guide's table."""
    known = sxids().get(sxid.number)
    if sxid.fatal or (sxid.fatal is None and known is not None and known.severity == "fail"):
        return Status.FAIL
    return Status.PASS if known is not None and known.severity == "information" else Status.WARN


def _response(sxid: SXid) -> Response:
    """What the table asks for; of an error that is not fatal here no reset, and of a fatal one at least that."""
    known = sxids().get(sxid.number)
    response = "report" if known is None or known.response == "none" else known.response
    if sxid.fatal:
        return "fabric-reset" if response == "report" else response
    resets = response in ("fabric-reset", "fabric-reboot")
    return "report" if resets and (sxid.fatal is False or known is None or known.fatality == "non-fatal") else response


def _text(number: int) -> str:
    known = sxids().get(number)
    return known.text if known is not None else "not in NVIDIA's guide"
