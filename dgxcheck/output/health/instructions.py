"""Causes in English: what to do, how urgent it is, how sure the cause is, and what was tried before."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from dgxcheck.assessment.result import Assessment
from dgxcheck.checks.engine.finding import Finding, counted, first_of
from dgxcheck.diagnosis.action import Action, first_remedy, preparatory
from dgxcheck.diagnosis.confidence import Confidence, Reason
from dgxcheck.diagnosis.preserve import Preserve
from dgxcheck.diagnosis.recurrence import Recurrence
from dgxcheck.facts.faults.kind import Scope, Step, Urgency
from dgxcheck.facts.kernel_log import OFF_BUS
from dgxcheck.output.health.finding_lines import component_name
from dgxcheck.output.health.sentences import device_list, instruction_text

STEPS: Mapping[Step, str] = {
    "watch": "watch", "inspect": "inspect", "check-program": "check the program",
    "restart-program": "restart the program", "drain": "drain",
    "stop-jobs": "stop jobs", "restart-service": "restart service", "load-module": "load module",
    "change-setting": "change setting", "reset-gpu": "reset GPU", "reboot": "reboot",
    "power-cycle": "cold power cycle", "reseat": "reseat or recable", "field-diagnostic": "field diagnostic",
    "replace": "replace", "contact-vendor": "contact the vendor", "contact-host": "contact the host's administrator",
}  # fmt: skip
URGENCIES: Mapping[Urgency, str] = {
    "now": "due now", "next-drain": "can wait for the next drain",
    "next-maintenance": "can wait for the next maintenance", "watch": "only if it gets worse",
}  # fmt: skip
_DISTURBED: Mapping[Scope, str] = {
    "none": "", "programs": "those programs", "jobs": "jobs on {}", "traffic": "traffic of {}",
    "fabric": "new connections in the fabric", "device": "{}", "host": "everything on this host",
}  # fmt: skip


def action_text(action: Action, found: Mapping[str, Finding]) -> str:
    """``nvidia-smi -r -i 0000:0a:00.0; then restart the stopped services``; ``found``: findings by key."""
    typed = [shlex.join(command) for command in action.commands]
    sentence = instruction_text(action.instruction, found.get(action.remedy_of))
    for command in typed:
        sentence = sentence.replace(f" ({command})", "")
    return where(action) + ("; ".join(filter(None, (*typed, sentence))) or STEPS[action.step])


def where(action: Action) -> str:
    """Before what is done: that it is done elsewhere than where dgxcheck runs."""
    return "on the host of this container, as all that follows: " if action.instruction.values.get("outside") else ""


def step_text(action: Action, found: Mapping[str, Finding]) -> str:
    """``reset GPU: nvidia-smi -r ..``, or ``reboot``: the name of a step is not repeated."""
    step, text = STEPS[action.step], action_text(action, found)
    return step if text == step else f"{step}: {text}"


def disturbed(action: Action) -> str:
    """``jobs on GPU0 to GPU7``; empty where nothing is disturbed."""
    return _DISTURBED[action.scope].format(device_list(action.disturbs) or "all devices")


def preserve_text(preserve: Preserve) -> str:
    """``dmesg > dmesg.txt``"""
    return shlex.join(preserve.command) + (f" > {shlex.quote(preserve.output)}" if preserve.output else "")


_VERBS = ("change-setting", "inspect", "reseat", "replace")
"""Steps whose sentences say themselves what is done."""


def remedies(assessment: Assessment) -> dict[str, str]:
    """By key of the finding, the first action of its cause that can help and whether jobs are in its way; without a
    cause the remedy of the check."""
    found = assessment.found
    advised = {key: finding.remedy for key, finding in found.items()}
    for cause in assessment.causes:
        action = first_remedy(cause.actions)
        says_itself = action.remedy_of or (action.step in _VERBS and not action.commands)
        text = action_text(action, found) if says_itself else step_text(action, found)
        if before := preparatory(cause.actions):
            place = where(action)
            text = f"{place}{' and '.join(STEPS[step] for step in before)}, then {text.removeprefix(place)}"
        advised |= dict.fromkeys(cause.explains, text)
    return advised


def confidence_text(confidence: Confidence) -> str:
    """``read directly``, ``inferred from 2 kinds of evidence``, ``a guess among 3: ...``"""
    others = ", ".join(map(component_name, confidence.others))
    kinds = counted(confidence.kinds, "kind of evidence", "kinds of evidence")
    beside = ", ".join(confidence.beside)
    texts: Mapping[Reason, str] = {
        "itself": "read directly",
        "in-all": "read directly, of every device",
        "evidence": f"inferred from {kinds}",
        "in-common": f"inferred from {kinds}: what devices that fail alike or at once have in common",
        "some-unaffected": f"inferred from {kinds}, but not seen at {beside}, also behind it",
        "rest-responds": f"inferred from {kinds}: what is lost is on it, while at the same"
        f" sockets respond {first_of(confidence.beside)}",
        "either-end": f"a guess among {confidence.among}: either end of the link, or what is between them",
        "one-of-several": f"a guess among {confidence.among}: it can also be {others}",
        "eliminated": f"inferred from {kinds}: every other hop ran at full speed in other tests",
        "shared": f"inferred from {kinds}: all slow results and no good one crossed it",
        "shared-with": f"a guess among {confidence.among}: the slow results also crossed {others}",
    }
    return texts[confidence.reason]


def recurrence_text(recurrence: Recurrence) -> str:
    """``Xid 62 came back after a reboot (last seen at 2026-11-20T10:00:00Z): reset and reboot did not cure it``"""
    off_bus, reboots = recurrence.number == OFF_BUS, recurrence.reboots
    what = "the GPU fell off the bus again" if off_bus else f"Xid {recurrence.number} came back"
    if not reboots:
        return f"{what} after a reset or driver reload, which did not cure it"
    cycles = counted(reboots, *(("reboot or power cycle", "reboots or power cycles") if off_bus else ("reboot",)))
    last = f" (last seen at {recurrence.date})" if recurrence.date else ""
    if off_bus:
        result = "that did not cure it"
    elif reboots > 1:
        result = "reset and reboots did not cure it, which points to hardware"
    else:
        result = f"{'reset and reboot' if 'reboot' in recurrence.skipped else 'the reset'} did not cure it"
    return f"{what} after {cycles}{last}: {result}"
