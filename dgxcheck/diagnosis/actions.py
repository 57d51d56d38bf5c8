"""What to do about a component, from the least disruptive up, each step with what it disturbs."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.fault import DEVICE_DEAD, Fault
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.checks.peer_access.blockers import blocker
from dgxcheck.components.component import Component
from dgxcheck.components.locate import has_nvswitches
from dgxcheck.diagnosis.escalation import Step, ladder
from dgxcheck.diagnosis.recurrence import Recurrence, recurrence_of, remaining_steps
from dgxcheck.diagnosis.replacement import by_hand
from dgxcheck.diagnosis.reset_domain import named, reset_set
from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.host import Modules
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device


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
    "MIG mode": "nvidia-smi{id} -mig 0, or 1", "device node": "nvidia-modprobe{minors}",
    "device nodes": "nvidia-modprobe -c 255; nvidia-modprobe -u -c 0",
    "large BARs": "switch on Above 4G Decoding, with all the address space that it offers, in the firmware",
    "PCIe setting": "set speed and width of the slots to automatic in the firmware",
    "settings of NCCL": "run with NCCL_DEBUG=INFO; look for NCCL_P2P_DISABLE, NCCL_P2P_LEVEL and NCCL_SHM_DISABLE in"
    " the job's environment, /etc/nccl.conf and ~/.nccl.conf",
    "NVLink setting": "look for NVreg_NvLinkDisable in /etc/modprobe.d, and load the driver again",
    "memory bandwidth": "look at the population of the memory channels, NUMA and power settings in the firmware",
}  # fmt: skip
"""nvidia-smi(1); nvidia-modprobe(1): -c is a GPU's minor, 255 for /dev/nvidiactl, with -u of /dev/nvidia-uvm."""
_HOLDERS = ("nvidia_peermem", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia")
"""Modules in the order in which they let go of each other."""


def actions(
    box: Box, component: Component, explained: Sequence[Finding]
) -> tuple[tuple[Action, ...], Recurrence | None]:
    """Never empty, and the recurrence that rules out the first steps."""
    about = [each for each in explained if each.judgement.fault not in DEVICE_DEAD and each.witness != "log"]
    steps = ladder(box, component, explained)
    tried = recurrence_of(box, explained)
    left, recurrence = (steps, None) if tried is None else remaining_steps(steps, tried)
    alone = named(box, component) if "reset GPU" not in left else ()
    return tuple(_action(box, component, step, about or explained, alone) for step in left), recurrence


def _action(
    box: Box, component: Component, step: Step, explained: Sequence[Finding], alone: Sequence[Device]
) -> Action:
    """``alone``: the GPUs whose jobs are enough to end, where no reset follows."""
    remedy = explained[0].remedy
    if step == "change setting":
        return Action(action=step, disturbs=(), command=_setting(box, component, explained))
    if component.kind == "host" and step == "stop job":
        return Action(action=step, disturbs=("those programs",), command=remedy)
    if component.kind == "hca" and step == "load module":
        command = "modprobe -r mlx5_ib mlx5_core; modprobe mlx5_ib"
        return Action(action=step, disturbs=("traffic of all HCAs",), command=command)
    if step in ("stop job", "reset GPU"):
        return _without_jobs(box, step, alone or reset_set(box, component))
    if step in ("reboot", "power-cycle cold"):
        cold = "shut down, take the power off for a minute, switch on"
        return Action(action=step, disturbs=_BOX, command="reboot" if step == "reboot" else cold)
    if step in ("reseat or cable", "replace"):
        return Action(action=step, disturbs=_parted(component), command=by_hand(box, component, step))
    if component.kind == "driver" or component.part == "NVSwitches":
        command = _reload(box) if step == "load module" else _FABRIC_MANAGER
        return Action(action=step, disturbs=(_jobs_on_all(box),), command=command)
    if component.kind == "subnet-manager":
        return Action(action=step, disturbs=("new connections in the fabric",), command=_SUBNET_MANAGER)
    return Action(action=step, disturbs=(), command=remedy)


def _setting(box: Box, component: Component, explained: Sequence[Finding]) -> str:
    """What to type for a part of the machine; of two GPUs' way what is seen of it; else what the check says."""
    ends = [box.topology.device(bdf) for bdf in (component.bdf, component.peer_bdf) if bdf is not None]
    if component.kind == "path" and len(ends) == 2 and ends[0] is not None and ends[1] is not None:
        return blocker(box, ends[0], ends[1]).remedy
    if Fault.PORT_DISABLED in {each.judgement.fault for each in explained}:
        return f"mlxlink -d {component.bdf} --port_state UP"
    if Fault.LIBRARY_MISSING in {each.judgement.fault for each in explained}:
        return "install the driver's libraries in the version that /proc/driver/nvidia/version names, then ldconfig"
    known = _SETTINGS.get(component.part)
    if known is None:
        return explained[0].remedy
    return known.format(id=f" -i {component.bdf}" if component.bdf else "", minors=_minors(box, component))


def _minors(box: Box, component: Component) -> str:
    listed = box.snapshot.gpu.gpus if isinstance(box.snapshot.gpu, Nvml) else ()
    return "".join(f" -c {gpu.minor}" for gpu in listed if component.bdf in (None, gpu.bdf))


_SUBNET_MANAGER = (
    "look with sminfo whether one answers; where it runs, on a node or in a switch, look into its log and start it"
    " again (systemctl restart opensm)"
)
_FABRIC_MANAGER = (
    "systemctl restart nvidia-fabricmanager, of the driver's own version; then look into journalctl -u"
    " nvidia-fabricmanager"
)


def _without_jobs(box: Box, step: Step, gpus: Sequence[Device]) -> Action:
    """End the jobs on these, or reset them."""
    every = len(gpus) == len(box.topology.gpus)
    ids = "" if every else f" -i {','.join(str(gpu.bdf) for gpu in gpus)}"
    jobs = _jobs_on_all(box) if every else f"jobs on {', '.join(gpu.name for gpu in gpus)}"
    command = (
        f"nvidia-smi{ids} --query-compute-apps=pid,name --format=csv, then end those"
        if step == "stop job"
        else f"systemctl stop {_clients(box)}; nvidia-smi -r{ids}; then start these again"
    )
    return Action(action=step, disturbs=(jobs,), command=command)


def _jobs_on_all(box: Box) -> str:
    number = len(box.topology.gpus)
    if number == 1:
        return "jobs on the GPU"
    return f"jobs on all {number} GPUs" if number else "jobs on all GPUs"


def _clients(box: Box) -> str:
    """Services that keep GPUs open."""
    return f"nvidia-persistenced{' nvidia-fabricmanager' if has_nvswitches(box) else ''} nvidia-dcgm"


def _reload(box: Box) -> str:
    """Unload what is loaded, or may be, and load it again."""
    known = box.snapshot.modules.modules if isinstance(box.snapshot.modules, Modules) else ()
    absent = {each.name for each in known if each.loaded is False}
    held = [name for name in _HOLDERS if name not in absent or name == "nvidia"]
    load = [name for name in ("nvidia", "nvidia_uvm", "nvidia_peermem") if name != "nvidia_peermem" or name in held]
    modules = f"modprobe -r {' '.join(held)}; modprobe -a {' '.join(load)}"
    return f"systemctl stop {_clients(box)}; {modules}; then start these again"


def _parted(component: Component) -> tuple[str, ...]:
    """A cable outside or a disk can be changed while the machine runs."""
    outside = component.kind in ("port", "interface", "disk")
    return (component.name,) if outside else _BOX
