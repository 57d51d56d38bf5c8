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
from dgxcheck.output.plain_text import wording

STEPS: Mapping[Step, str] = wording("step")
URGENCIES: Mapping[Urgency, str] = wording("urgency")
_DISTURBED: Mapping[Scope, str] = wording("disturbed")
_CONFIDENCE: Mapping[Reason, str] = wording("confidence")


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
    return _DISTURBED.get(action.scope, "").format(device_list(action.disturbs) or "all devices")


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
    return _CONFIDENCE[confidence.reason].format(
        kinds=counted(confidence.kinds, "kind of evidence", "kinds of evidence"), among=confidence.among,
        others=", ".join(map(component_name, confidence.others)), beside=", ".join(confidence.beside),
        first=first_of(confidence.beside),
    )  # fmt: skip


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
