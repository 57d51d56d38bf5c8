"""How sure a cause is and what was tried before, in English."""

from __future__ import annotations

from dgxcheck.checks.engine.wording import counted
from dgxcheck.diagnosis.confidence import Confidence
from dgxcheck.diagnosis.recurrence import Recurrence
from dgxcheck.output.health.component_name import component_name
from dgxcheck.xid.line import OFF_BUS


def confidence_text(confidence: Confidence) -> str:
    """``fair: one observation, of this component``"""
    return f"{confidence.level}: {_reason(confidence)}"


def _reason(confidence: Confidence) -> str:
    number = confidence.findings
    if confidence.reason == "several-findings":
        return f"{number} independent observations point to it"
    if confidence.reason == "some-unaffected":
        unaffected = ", ".join(confidence.beside)
        return f"{number} independent observations point to it, but {unaffected}, also behind it, has no problem"
    if confidence.reason == "in-common":
        return f"{number} independent observations of devices that fail alike or at once have it in common"
    if confidence.reason == "one-finding":
        return "one observation, of this component"
    if confidence.reason == "either-end":
        return "one observation; either end of the link, or what is between them, can be at fault"
    if confidence.reason == "eliminated":
        return "by elimination: every other hop ran at full speed in other tests"
    if confidence.reason == "shared":
        return f"shared by {number} slow results and by no good one"
    others = ", ".join(map(component_name, confidence.others))
    return f"shared by {number} slow results, but so are {others}"


def recurrence_text(recurrence: Recurrence) -> str:
    """``Xid 62 came back after a reboot (last seen at 2026-11-20T10:00:00Z): reset and reboot did not cure it``"""
    off_bus, reboots = recurrence.number == OFF_BUS, recurrence.reboots
    what = "the GPU fell off the bus again" if off_bus else f"Xid {recurrence.number} came back"
    if not reboots:
        return f"{what} after a reset or driver reload, which did not cure it"
    cycles = (
        counted(reboots, "reboot or power cycle", "reboots or power cycles") if off_bus else counted(reboots, "reboot")
    )
    last = f" (last seen at {recurrence.date})" if recurrence.date else ""
    return f"{what} after {cycles}{last}: {_not_cured_by(recurrence)}"


def _not_cured_by(recurrence: Recurrence) -> str:
    if recurrence.number == OFF_BUS:
        return "that did not cure it"
    if recurrence.reboots > 1:
        return "reset and reboots did not cure it, which points to hardware"
    return "reset and reboot did not cure it" if "reboot" in recurrence.skipped else "the reset did not cure it"
