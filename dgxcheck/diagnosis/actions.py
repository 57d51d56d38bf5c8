"""What to do about a component, from the least disruptive up, each step with what it disturbs."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.checks.check import Box
from dgxcheck.checks.finding import Finding
from dgxcheck.checks.p2p_stopped import stopped
from dgxcheck.diagnosis.again import again, beyond
from dgxcheck.diagnosis.component import Component
from dgxcheck.diagnosis.ladders import LOST, Step, ladder
from dgxcheck.diagnosis.reset import form_factor, reset_set
from dgxcheck.frozen import Record


class Action(Record):
    """One step."""

    action: Step
    disturbs: tuple[str, ...]
    """What stops or is lost meanwhile; empty for nothing."""
    command: str
    """What to type, or to do by hand."""


_BOX = ("everything on this machine",)
_SETTINGS = {
    "ECC mode": "nvidia-smi{id} -e 1", "compute mode": "nvidia-smi{id} -c 0", "clock setting": "nvidia-smi{id} -rac",
    "persistence mode": "systemctl enable --now nvidia-persistenced, or nvidia-smi{id} -pm 1",
    "power limit": "nvidia-smi{id} -pl WATT, with the default that nvidia-smi -q -d POWER names",
    "MIG mode": "nvidia-smi{id} -mig 0, or 1", "device node": "nvidia-modprobe -u -c 0",
    "device nodes": "nvidia-modprobe -u -c 0",
    "large BARs": "switch on Above 4G Decoding, with all the address space that it offers, in the firmware",
    "PCIe setting": "set speed and width of the slots to automatic in the firmware",
    "settings of NCCL": "run with NCCL_DEBUG=INFO; look for NCCL_P2P_DISABLE, NCCL_P2P_LEVEL and NCCL_SHM_DISABLE in"
    " the job's environment, /etc/nccl.conf and ~/.nccl.conf",
    "NVLink setting": "look for NVreg_NvLinkDisable in /etc/modprobe.d, and load the driver again",
    "memory bandwidth": "look at the population of the memory channels, NUMA and power settings in the firmware",
}  # fmt: skip


def actions(box: Box, component: Component, explained: Sequence[Finding]) -> tuple[tuple[Action, ...], str]:
    """Never empty, and in words why the first are left out; the remedies of the findings say more."""
    about = [finding for finding in explained if finding.id not in LOST and not finding.id.startswith("kernel.")]
    remedy = (about or explained)[0].remedy
    steps = ladder(box, component, explained)
    tried = again(box, explained)
    left, why = (steps, "") if tried is None else beyond(steps, tried)
    return tuple(_action(box, component, step, remedy) for step in left), why


def _action(box: Box, component: Component, step: Step, remedy: str) -> Action:
    if step == "change setting":
        return Action(action=step, disturbs=(), command=_setting(box, component, remedy))
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
        jobs = (f"jobs on all {len(box.topology.gpus)} GPUs",) if component.kind == "driver" else ()
        return Action(action=step, disturbs=jobs, command=_RELOAD if jobs else remedy)
    return Action(action=step, disturbs=(), command=_SERVICES.get(component.part or component.kind, remedy))


def _setting(box: Box, component: Component, remedy: str) -> str:
    """What to type for a part of the machine; of two GPUs' way what is seen of it; else what the check says."""
    ends = [box.topology.device(bdf) for bdf in (component.bdf, component.peer_bdf) if bdf is not None]
    if component.kind == "path" and len(ends) == 2 and ends[0] is not None and ends[1] is not None:
        return stopped(box, ends[0], ends[1]).remedy
    known = _SETTINGS.get(component.part.partition(" at ")[0])
    return remedy if known is None else known.format(id=f" -i {component.bdf}" if component.bdf else "")


_SERVICES = {
    "subnet manager": "start the subnet manager where it runs, on a node (systemctl restart opensm) or in a switch",
    "NVLink setting": "systemctl restart nvidia-fabricmanager, where the machine has NVSwitches",
}
_CLIENTS = "nvidia-persistenced nvidia-fabricmanager nvidia-dcgm"
"""They keep GPUs open."""
_WITHOUT_JOBS = {
    "stop job": "nvidia-smi{ids} --query-compute-apps=pid,name --format=csv, then end those",
    "reset GPU": f"systemctl stop {_CLIENTS}; nvidia-smi -r{{ids}}; then start these again",
}
_RELOAD = (
    f"systemctl stop {_CLIENTS}; modprobe -r nvidia_uvm nvidia_drm nvidia_modeset nvidia;"
    " modprobe -a nvidia nvidia_uvm; then start these again"
)
_LOOK_AT = {
    ("host", "cooling"): "look at fans, filters and the inlet air; in a DGX Station at pump and coolant",
    ("host", "power supply"): "look at the power supplies, their cables and feeds",
    (
        "host",
        "memory",
    ): "look for DIMMs that are gone or have errors, dmidecode -t memory names their slots; reseat those",
    ("fabric", ""): "look at the switch that the cables go to, and at their seating",
    ("gpu", "cooling"): "look at fans, filters and the air before it; then reseat",
    ("gpu", "power supply"): "look at the power cables and supplies that feed it; then reseat",
    ("hca", "slot"): "move it to the slot where the reference machine has one",
}
"""Before or in place of a new seat, by kind and part."""


def _parted(component: Component) -> tuple[str, ...]:
    """A cable outside or a disk can be changed while the machine runs."""
    outside = component.kind in ("port", "interface", "disk")
    return (component.name,) if outside else _BOX


def _by_hand(box: Box, component: Component, step: Step) -> str:
    look = _LOOK_AT.get((component.kind, component.part.partition(" at ")[0])) if step == "reseat or cable" else None
    if component.kind in ("gpu", "link", "nvlink"):
        verb = look or ("reseat" if step == "reseat or cable" else "replace")
        return f"{verb} {form_factor(box, component)}"
    if look is not None:
        return look
    verb = "reseat" if step == "reseat or cable" else "replace"
    if component.kind in ("port", "interface"):
        return f"{verb} the cable or transceiver at {component.name}"
    failed = component.kind in ("host", "fabric")
    return f"{verb} {f'what has failed of {component}' if failed else component}"
