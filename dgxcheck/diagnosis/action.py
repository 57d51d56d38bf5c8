"""An action as data: the step, what to type, what to do by hand, what it disturbs, when it is due, its source.

``output`` makes the English: no sentence stands here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping

from dgxcheck.checks.engine.finding import Finding, Status
from dgxcheck.components.component import Component
from dgxcheck.facts.faults import GPU_DEAD, Fault
from dgxcheck.facts.faults.kind import OWN, XIDS, FaultKind, Scope, Step, Urgency
from dgxcheck.facts.record import Record, replace
from dgxcheck.package_files import table
from dgxcheck.topology.model import Device

Value = str | int | tuple[str, ...]
Commands = tuple[tuple[str, ...], ...]


class Instruction(Record):
    """What to do by hand or to know beside the commands, as a code with its parameters."""

    code: str
    """The row of ``instructions.tsv``, and of ``output/health/sentences.tsv``."""
    values: Mapping[str, Value] = {}
    """Names and figures that the sentence needs: ``slot``, ``gpus``, ``services`` ..."""


class Action(Record):
    """One step."""

    step: Step
    commands: Commands = ()
    """What to type, in order, each as an argument list; empty where all is done by hand."""
    instruction: Instruction
    remedy_of: str = ""
    """Key of the finding whose remedy is the instruction (code ``finding-remedy``)."""
    disturbs: tuple[str, ...] = ()
    """Names of the devices whose jobs or traffic stop; empty for none, and for the whole host."""
    scope: Scope = "none"
    urgency: Urgency = "now"
    goes_on: bool = False
    """Is it due after the step before it, whether or not the fault persists?"""


def on_gpus(
    step: Step, code: str, gpus: Iterable[Device], commands: Commands = (), values: Mapping[str, Value] = {}
) -> Action:  # fmt: skip
    """A step that ends the jobs on these GPUs."""
    instruction = Instruction(code=code, values=values)
    names = tuple(gpu.name for gpu in gpus)
    return Action(step=step, commands=commands, instruction=instruction, scope="jobs", disturbs=names)


PREPARATORY = ("drain", "stop-jobs")
"""Steps that cure nothing where another follows them."""


def first_remedy(actions: tuple[Action, ...]) -> Action:
    """The first action that can help: that after draining the host and stopping its jobs."""
    return next((action for action in actions if action.step not in PREPARATORY), actions[-1])


def preparatory(actions: tuple[Action, ...]) -> tuple[Step, ...]:
    """What comes before ``first_remedy`` so that it ends no job: ``drain``, ``stop-jobs``."""
    before = actions[: actions.index(first_remedy(actions))]
    return tuple(dict.fromkeys(action.step for action in before))


_BEYOND_A_CONTAINER: tuple[Step, ...] = (
    "drain", "stop-jobs", "restart-service", "load-module", "reset-gpu", "reboot", "power-cycle",
    "reseat", "replace",
)  # fmt: skip
_OF_A_HOST = ("systemctl", "journalctl", "ipmitool", "dmidecode", "mdadm")
"""Commands that tell of services, BMC, memory and arrays where these are."""
_OF_DEVICES = ("gpu", "gpus", "bridge", "port", "hca")
_OF_THE_KERNEL = ("CPU frequency governor", "CPU clock setting", "NUMA balancing", "ACS setting")
"""Devices, and parts of the host, whose settings no container changes."""


def outside(component: Component, planned: list[Action]) -> list[Action]:
    """With the first action that a container cannot do marked: it and all after it are for its host."""
    for n, action in enumerate(planned):
        set_there = component.kind in _OF_DEVICES or component.part in _OF_THE_KERNEL
        looks_there = action.step == "inspect" and any(command[0] in _OF_A_HOST for command in action.commands)
        set_there &= action.step == "change-setting"
        if action.step in _BEYOND_A_CONTAINER or set_there or looks_there:
            marked = replace(action.instruction, values={**action.instruction.values, "outside": 1})
            return [*planned[:n], replace(action, instruction=marked), *planned[n + 1 :]]
    return planned


ORDER: tuple[Urgency, ...] = ("now", "next-drain", "next-maintenance", "watch")


def urgency_of(findings: Iterable[Finding]) -> Urgency:
    """The most urgent of the findings; what could not be read makes nothing more urgent.

    An uncorrected error whose row waits for its remapping was contained, and its page is no longer used (Ampere and
    later; https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html), as one that the driver logs so, or after
    which it asks to drain and then to reset; one that was not has an Xid of its own.
    """
    faults = [(fault, each.status) for each in findings if (fault := each.judgement.fault) is not None]
    if any(fault in _CONTAINED for fault, _ in faults):
        faults = [each for each in faults if each[0] is not Fault.ECC_UNCORRECTED]
    due = (fault.warns if status is Status.WARN else fault.fails for fault, status in faults)
    return min(due, key=ORDER.index, default="now")


_CONTAINED = frozenset({Fault.REMAP_PENDING, Fault.DRAIN_AND_RESET, Fault.XID_CONTAINED})


_HV = "https://docs.nvidia.com/health-validation/reference/checks/xid.md: drain before reset_gpu and service_required"
_TABLE = [*table("diagnosis/instructions.tsv")]
SOURCES: Mapping[str, str] = {row["code"]: row["source"] for row in _TABLE}
"""By code, where ``source_of`` knows none that is more particular."""
COMMANDS: Mapping[str, Commands] = {
    row["code"]: tuple(tuple(shlex.split(command)) for command in row["commands"].split("; "))
    for row in _TABLE if row["commands"]
}  # fmt: skip
"""By code, where what is looked at depends on nothing else."""


def source_of(action: Action, faults: Iterable[FaultKind], finding: Finding | None) -> str:
    """What says that this is to be done: of a finding's own remedy the fault's source, else what its check reads; of a
    drain after an Xid NVIDIA's guide of those, of a reboot for a lost GPU its catalogue; of a step that a fault's row
    names the source of that row.
    """
    if finding is not None:
        fault = finding.judgement.fault
        return (fault.source if fault is not None else "") or f"{OWN}, by {finding.source}"
    code, reported = action.instruction.code, [*faults]
    if action.step == "drain" and any(each in (Fault.XID, Fault.GPU_LOST) or each.source == XIDS for each in reported):
        return f"{_HV}; {SOURCES[code]}" if code == "drain-scheduler" else _HV
    if code == "reboot" and GPU_DEAD & {*reported} == {Fault.GPU_LOST}:
        return f"{XIDS}: Xid 79, RESTART_BM"
    named = (each.source for each in reported if action.step in each.steps and each.source not in ("", OWN))
    return next(named, SOURCES[code]) if code in ("reboot", "watch-counters") else SOURCES[code]
