"""What to do about a component, from the least disruptive up, each step with what it disturbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from dgxcheck.checks.check import Box
from dgxcheck.checks.finding import Finding
from dgxcheck.diagnosis.again import again, beyond
from dgxcheck.diagnosis.component import Component
from dgxcheck.diagnosis.reset import form_factor, reset_set
from dgxcheck.frozen import Record

Step = Literal[
    "nothing", "restart service", "load module", "change setting", "stop job", "reset GPU", "reboot",
    "power-cycle cold", "reseat or cable", "replace",
]  # fmt: skip


class Action(Record):
    """One step."""

    action: Step
    disturbs: tuple[str, ...]
    """What stops or is lost meanwhile; empty for nothing."""
    command: str
    """What to type, or to do by hand."""


_BOX = ("everything on this machine",)
LADDERS: Mapping[tuple[str, str], tuple[Step, ...]] = {
    ("gpu", "memory"): ("stop job", "reset GPU", "reboot", "replace"),
    ("gpu", "cooling"): ("reseat or cable", "replace"),
    ("gpu", "power supply"): ("reseat or cable", "replace"),
    ("gpu", "NVLink"): ("stop job", "reset GPU", "power-cycle cold", "reseat or cable", "replace"),
    ("gpu", "InfoROM"): ("reboot", "replace"),
    ("gpu", "BAR1"): ("change setting", "reboot"),
    ("gpu", "ECC mode"): ("change setting", "reset GPU"),
    ("gpu", "MIG mode"): ("change setting", "reset GPU"),
    ("gpu", "clock setting"): ("change setting",),
    ("gpu", "power limit"): ("change setting",),
    ("gpu", "compute mode"): ("change setting",),
    ("gpu", "persistence mode"): ("change setting",),
    ("gpu", "device node"): ("change setting",),
    ("gpu", ""): ("stop job", "reset GPU", "power-cycle cold", "reseat or cable", "replace"),
    ("link", ""): ("power-cycle cold", "reseat or cable", "replace"),
    ("nvlink", ""): ("stop job", "reset GPU", "power-cycle cold", "reseat or cable", "replace"),
    ("gpu", "model"): ("replace",),
    ("gpu", "versions and settings"): ("change setting",),
    ("path", ""): ("change setting", "reboot"),
    ("port", ""): ("reseat or cable", "replace"),
    ("subnet manager", ""): ("restart service",),
    ("hca", ""): ("change setting", "reseat or cable", "replace"),
    ("hca", "firmware"): ("change setting",),
    ("hca", "slot"): ("reseat or cable",),
    ("driver", ""): ("restart service", "load module", "reboot"),
    ("slot", "missing GPU"): ("power-cycle cold", "reseat or cable", "replace"),
    ("slot", "missing HCA"): ("power-cycle cold", "reseat or cable", "replace"),
    ("host", "IOMMU setting"): ("change setting", "reboot"),
    ("host", "memory"): ("reseat or cable", "replace"),
    ("host", "placement of GPUs"): ("reseat or cable",),
    ("host", "device nodes"): ("change setting",),
    ("host bridge", ""): ("change setting",),
    ("socket interconnect", ""): ("change setting", "reboot"),
    ("disk", ""): ("replace",),
    ("interface", ""): ("reseat or cable", "change setting"),
}
LOST = ("gpu.lost", "kernel.off-bus", "gpu.count")
"""A GPU that is gone cannot be reset."""
_SETTINGS = {
    "ECC mode": "nvidia-smi -i {bdf} -e 1", "compute mode": "nvidia-smi -i {bdf} -c 0",
    "persistence mode": "nvidia-smi -i {bdf} -pm 1", "clock setting": "nvidia-smi -i {bdf} -rac",
    "power limit": "nvidia-smi -i {bdf} -pl WATT, with the default that nvidia-smi -q -d POWER names",
    "MIG mode": "nvidia-smi -i {bdf} -mig 0, or 1", "device node": "nvidia-modprobe -u -c 0",
    "device nodes": "nvidia-modprobe -u -c 0",
}  # fmt: skip


def actions(box: Box, component: Component, explained: Sequence[Finding]) -> tuple[tuple[Action, ...], str]:
    """Never empty, and in words why the first are left out; the remedies of the findings say more."""
    kind, part = component.kind, component.part
    ladder = LADDERS.get((kind, part)) or LADDERS.get((kind, part.partition(" at ")[0]), ("change setting",))
    if any(finding.id in LOST for finding in explained):
        ladder = tuple(step for step in ladder if step not in ("stop job", "reset GPU")) or ("power-cycle cold",)
    tried = again(box, explained)
    left, why = (ladder, "") if tried is None else beyond(ladder, tried)
    remedy = explained[0].remedy
    return tuple(_action(box, component, step, remedy) for step in left), why


def _action(box: Box, component: Component, step: Step, remedy: str) -> Action:
    if step == "change setting":
        command = _SETTINGS.get(component.part, remedy).format(bdf=component.bdf)
        return Action(action=step, disturbs=(), command=command)
    if step in ("stop job", "reset GPU"):
        gpus = reset_set(box, component)
        every = len(gpus) == len(box.topology.gpus)
        ids = "" if every else f" -i {','.join(str(gpu.bdf) for gpu in gpus)}"
        names = f"all {len(gpus)} GPUs" if every and len(gpus) > 1 else ", ".join(gpu.name for gpu in gpus)
        return Action(action=step, disturbs=(f"jobs on {names}",), command=_WITHOUT_JOBS[step].format(ids=ids))
    if step in ("reboot", "power-cycle cold"):
        by_hand = "shut down, take the power off for a minute, switch on"
        return Action(action=step, disturbs=_BOX, command="reboot" if step == "reboot" else by_hand)
    if step in ("reseat or cable", "replace"):
        return Action(action=step, disturbs=_parted(component), command=_by_hand(box, component, step))
    if step == "load module":
        return Action(action=step, disturbs=(), command=_MODULES.get(component.part or component.kind, remedy))
    return Action(action=step, disturbs=(), command=remedy)


_WITHOUT_JOBS = {
    "stop job": "nvidia-smi{ids} --query-compute-apps=pid,name --format=csv, then end those",
    "reset GPU": "systemctl stop nvidia-persistenced nvidia-fabricmanager nvidia-dcgm; nvidia-smi -r{ids}",
}
_MODULES = {"driver": "modprobe nvidia"}


def _parted(component: Component) -> tuple[str, ...]:
    """A cable outside or a disk can be changed while the machine runs."""
    outside = component.kind in ("port", "interface", "disk")
    return (component.name,) if outside else _BOX


def _by_hand(box: Box, component: Component, step: Step) -> str:
    verb = "reseat" if step == "reseat or cable" else "replace"
    if component.kind in ("port", "interface"):
        return f"{verb} the cable or transceiver at {component.name}"
    if component.kind in ("gpu", "link", "nvlink"):
        return f"{verb} {form_factor(box, component)}"
    return f"{verb} {component}"
