"""Single steps as actions: drain, stop jobs, reset, restart a service, load a module; and what keeps GPUs open.

nvidia-smi(1), ``-r``: no application may use the GPU, no X server or other client either. ``fuser -v`` lists every
client, ``--query-compute-apps`` compute programs alone. NVIDIA's MIG guide names nvsm and dcgm on DGX systems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.box import Box, guest, mig_enabled
from dgxcheck.checks.network.ports import UP, listed_ports, role
from dgxcheck.components.component import Component
from dgxcheck.components.locate import all_gpus, has_nvswitches
from dgxcheck.diagnosis.action import Action, Code, Instruction, Value
from dgxcheck.diagnosis.form_factor import is_tray_of_a_rack
from dgxcheck.diagnosis.reset_domain import gpus_of, is_before_ampere, is_k80
from dgxcheck.facts.bdf import for_smi
from dgxcheck.facts.host import Host, Memlock
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.nvml.gpu import REGISTERED, Fabric, GpuModes, GpuProcess
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device

IMEX = "nvidia-imex"
"""Of trays of a rack: NVLinks between hosts. It keeps GPUs open (NVIDIA/ai-cloud-validation pull request 603)."""
_CANDIDATES = ("nvidia-persistenced", "nvidia-dcgm", "dcgm", "dcgm-exporter")
"""systemd units; ``dcgm`` is the older name of nvidia-dcgm."""
_CLIENTS = (
    *_CANDIDATES, "nvidia-dcgm-exporter", "nvidia_gpu_exporter", "nvsm", "nvsm-core", "nvsm-mqtt", "nvsm-api-gateway",
    IMEX,
)  # fmt: skip
"""Units that keep GPUs open while they run."""
_DISPLAYS = ("display-manager", "gdm", "gdm3", "lightdm", "sddm")
_UNITS: Mapping[str, str] = {
    "nvidia-persistenced": "nvidia-persistenced", "nv-hostengine": "nvidia-dcgm", "dcgm-exporter": "dcgm-exporter",
}  # fmt: skip
"""By the program that NVML shows on a GPU."""
_SCREENS = ("Xorg", "X", "gnome-shell", "Xwayland")


def services(box: Box, gpus: Sequence[Device], with_switches: bool = False) -> tuple[str, ...]:
    """What to give to ``systemctl stop``: the units that run; where that is not known the candidates, those that are
    seen on the GPUs first.

    Fabric Manager is stopped to reload the driver or to reset NVSwitches (``with_switches``), and before Ampere, where
    a reset takes the NVSwitches along; from Ampere on a reset of one GPU needs it running.
    """
    processes = [_name(process) for gpu in gpus for process in _processes(box, gpu)]
    on_gpus = [unit for name in processes if (unit := _UNITS.get(name)) is not None]
    host = box.snapshot.host
    nvsm = ["nvsm"] if isinstance(host, Host) and not isinstance(host.dgx_release, Missing) else []
    old = any(is_before_ampere(box, gpu) is True for gpu in gpus)
    fabric = ["nvidia-fabricmanager"] if with_switches or (has_nvswitches(box) and old) else []
    running = running_units(box)
    if running is not None:
        return tuple(unit for unit in (*_CLIENTS, *fabric) if unit in running)
    on = {unit.name for unit in rows(box.snapshot.units) if unit.enabled is True}
    enabled = [unit for unit in _CLIENTS if unit in on or (unit == IMEX and is_tray_of_a_rack(box))]
    return tuple(dict.fromkeys([*on_gpus, *enabled, *_CANDIDATES, *nvsm, *fabric]))


def running_units(box: Box) -> frozenset[str] | None:
    """Of the units that matter here those that run; None where that is not known."""
    units = box.snapshot.units
    if isinstance(units, Missing) or all(isinstance(unit.running, Missing) for unit in units):
        return None
    return frozenset(unit.name for unit in units if unit.running is True)


def minors(box: Box, gpus: Sequence[Device]) -> list[int]:
    """Those of the GPUs whose minor number, that of ``/dev/nvidia<minor>``, is known."""
    listed = {} if isinstance(box.nvml, Missing) else {row.bdf: row.minor for row in box.nvml.gpus}
    return [minor for gpu in gpus if isinstance(minor := listed.get(gpu.bdf or ""), int)]


def drives_a_display(box: Box, gpus: Sequence[Device]) -> bool:
    """Is a display active on one of them, or does an X server or a desktop use it?

    Where NVML does not list what runs on the GPUs, a display manager that runs counts.
    """
    if all(isinstance(box.gpu(gpu).processes, Missing) for gpu in gpus):
        return any(unit in _DISPLAYS for unit in running_units(box) or ())
    modes = [box.gpu(gpu).modes for gpu in gpus]
    active = any(isinstance(row, GpuModes) and row.display_active is True for row in modes)
    return active or any(_name(process) in _SCREENS for gpu in gpus for process in _processes(box, gpu))


def _processes(box: Box, gpu: Device) -> tuple[GpuProcess, ...]:
    activity = box.gpu(gpu).processes
    return () if isinstance(activity, Missing) else (*rows(activity.compute), *rows(activity.graphics))


def _name(process: GpuProcess) -> str:
    return process.name.rpartition("/")[2].partition(" ")[0] if isinstance(process.name, str) else ""


_HOLDERS = ("nvidia_fs", "gdrdrv", "nvidia_peermem", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", "nvidia")
"""Modules in the order in which they can be unloaded, GPUDirect Storage and GDRCopy first. modprobe(8) passes over one
that is not installed.
"""


def drain(box: Box) -> Action:
    """With the scheduler whose daemon runs here: scontrol(1) of Slurm, pbsnodes(8B) of OpenPBS, kubectl; else by hand.

    kubectl: https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
    """
    node, daemons = _node(box), _daemons(box)
    by_scheduler = {
        "slurmd": ("scontrol", "update", f"NodeName={node}", "State=DRAIN", "Reason=dgxcheck"),
        "pbs_mom": ("pbsnodes", "-o", node),
        "pbs": ("pbsnodes", "-o", node),
        "kubelet": ("kubectl", "cordon", node),
    }
    command = next((argv for daemon, argv in by_scheduler.items() if daemon in daemons and node), None)
    if command is None:
        return Action(step="drain", instruction=Instruction(code="drain-host"))
    return Action(step="drain", commands=(command,), instruction=Instruction(code="drain-scheduler"))


def _node(box: Box) -> str:
    host = box.snapshot.host
    return host.hostname.partition(".")[0] if isinstance(host, Host) and isinstance(host.hostname, str) else ""


def _daemons(box: Box) -> frozenset[str]:
    memlock = box.snapshot.memlock
    listed = {daemon.name for daemon in memlock.daemons} if isinstance(memlock, Memlock) else set()
    return (running_units(box) or frozenset()) | listed


def _evict(box: Box) -> tuple[tuple[str, ...], ...]:
    """Kubernetes starts what is stopped on a node again: pods are evicted from the whole node instead."""
    node = _node(box)
    if "kubelet" not in _daemons(box) or not node:
        return ()
    return (("kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data"),)


def stop_clients(box: Box, gpus: Sequence[Device], with_switches: bool = False) -> Action:
    """All that keeps these GPUs open; ``with_switches``: and the NVSwitches."""
    nodes = [f"/dev/nvidia{minor}" for minor in minors(box, gpus)] or ["/dev/nvidiactl"]
    display, evict = drives_a_display(box, gpus), _evict(box)
    to_stop, units_read = services(box, gpus, with_switches), running_units(box) is not None
    commands = [*evict]
    commands += [("systemctl", "isolate", "multi-user.target")] if display else []
    commands += [("systemctl", "stop", *to_stop)] if units_read and to_stop else []
    values: dict[str, Value] = {} if units_read else {"services": to_stop}
    values |= {"node": _node(box)} if evict else {}
    return Action(
        step="stop-jobs", commands=(*commands, ("fuser", "-v", *nodes)), scope="jobs",
        disturbs=tuple(gpu.name for gpu in (box.topology.gpus if evict else gpus)),
        instruction=Instruction(code="stop-gpu-clients-and-display" if display else "stop-gpu-clients", values=values),
    )  # fmt: skip


def stop_programs(box: Box, component: Component) -> Action:
    """Programs on a GPU that hold what others lack."""
    gpus = gpus_of(box, component)
    command = ("nvidia-smi", *_chosen(gpus), "--query-compute-apps=pid,name,used_memory", "--format=csv")
    return Action(
        step="stop-jobs", commands=(command,), instruction=Instruction(code="stop-gpu-programs"), scope="jobs",
        disturbs=tuple(gpu.name for gpu in gpus),
    )  # fmt: skip


def stop_load(box: Box, component: Component) -> Action:
    """Programs on a GPU that overheats; on all GPUs where the host's cooling is to blame."""
    stop = stop_programs(box, component if gpus_of(box, component) else all_gpus(box, ""))
    evict = _evict(box)
    disturbs = tuple(gpu.name for gpu in box.topology.gpus) if evict else stop.disturbs
    commands = (*evict, *stop.commands)
    return replace(stop, commands=commands, disturbs=disturbs, instruction=Instruction(code="stop-load"))


def _chosen(gpus: Sequence[Device]) -> tuple[str, ...]:
    """``-i`` with these GPUs; nothing where one of them has neither bus id nor number."""
    ids = [for_smi(gpu.bdf) for gpu in gpus]
    return ("-i", ",".join(ids)) if all(ids) and ids else ()


def reset(box: Box, gpus: Sequence[Device], with_switches: bool = False) -> Action:
    """nvidia-smi(1): without ``-i`` all GPUs in one command; ``with_switches``: the NVSwitches too.

    A text may show some GPUs of many: without the PCI tree only those that it names are reset, unless NVLinks join
    GPUs before Ampere, and where it names none there is no command to copy but that of NVSwitches, which resets all.
    """
    linked = len(gpus) > 1 and not any(gpu.nvlink_positions in (None, 0) for gpu in gpus)
    joined = linked and all(is_before_ampere(box, gpu) is not False for gpu in gpus)
    whole = joined or not isinstance(box.snapshot.pci, Missing)
    everything = whole and len(gpus) == len(box.topology.gpus)
    ids = () if everything else _chosen(gpus)
    everything |= with_switches and not ids
    code: Code = "reset-board" if all(map(is_k80, gpus)) else "reset-together"
    if with_switches or (_has_own_fabric(box) and gpus):
        old = any(is_before_ampere(box, gpu) is not False for gpu in gpus)
        code = "reset-all-with-switches" if with_switches or old else "reset-with-fabric-manager"
    elif len(gpus) == 1:
        code = "reset-one"
    values: dict[str, Value] = {"chosen": f" {' '.join(ids)}"} if ids else {}
    values |= {"mig": 1} if mig_enabled(box, *(gpu.bdf for gpu in gpus)) else {}
    named = ids or everything
    return Action(
        step="reset-gpu", commands=(("nvidia-smi", "-r", *ids),) if named else (), scope="jobs",
        instruction=Instruction(code=code, values=values) if named else Instruction(code="reset-named"),
        disturbs=tuple(gpu.name for gpu in gpus),
    )  # fmt: skip


def _has_own_fabric(box: Box) -> bool:
    """Does Fabric Manager of this machine join its GPUs? NVSwitches of HGX B300 are not seen where the functions that
    lead to them are not, but the GPUs are registered in a fabric that ends at the machine."""
    fabrics = [row.fabric for row in rows(box.snapshot.gpu_modes)] if guest(box) is None else []
    registered = any(isinstance(each, Fabric) and each.state == REGISTERED and not each.domain for each in fabrics)
    return has_nvswitches(box) or registered


def restart(box: Box, component: Component) -> Action:
    """The subnet manager, where it runs, or Fabric Manager, which can abort CUDA programs everywhere.

    DU-09883: ``ABORT_CUDA_JOBS_ON_FM_EXIT=1`` in shipped configurations.
    """
    if component.kind == "subnet-manager":
        instruction = Instruction(code="restart-subnet-manager")
        return Action(step="restart-service", instruction=instruction, scope="fabric")
    return Action(
        step="restart-service", commands=(("systemctl", "restart", "nvidia-fabricmanager"),), scope="jobs",
        instruction=Instruction(code="restart-fabric-manager"), disturbs=tuple(gpu.name for gpu in box.topology.gpus),
    )  # fmt: skip


def restart_imex(box: Box) -> Action:
    """It ends jobs on all nodes of the NVLink domain."""
    return Action(
        step="restart-service", commands=(("systemctl", "restart", "nvidia-imex"),), scope="jobs",
        instruction=Instruction(code="restart-imex"), disturbs=tuple(gpu.name for gpu in box.topology.gpus),
    )  # fmt: skip


def ask_subnet_manager(box: Box, port: str) -> tuple[tuple[str, ...], ...]:
    """What the cable of a port (``mlx5_1/1``) leads to, by a direct route (smpquery(8)); then sminfo(8) through that
    of a like adapter which knows its subnet manager: a port in INIT has no LID to ask.
    """
    hca, _, number = port.rpartition("/")
    look = ("smpquery", "-C", hca, "-P", number, "-D", "nodedesc", "0,1")
    pairs = listed_ports(box)
    own = {role(box, device) for device, _ in pairs if device.name == hca} - {None}
    served = (each for device, each in pairs if each.state in UP and each.sm_lid != 0 and role(box, device) in own)
    ask = [("sminfo", "-C", each.device, "-P", str(each.port)) for each in served][:1]
    return (*([look] if hca and number.isdecimal() else []), *ask)


def load(box: Box, component: Component) -> Action | None:
    """Reload the NVIDIA driver; None where it is not loaded, and for other modules: the finding's remedy names these.

    An HCA is bound to its driver by itself: the other HCAs use the same module.
    """
    if component.kind != "driver":
        return None
    absent = {module.name for module in box.modules if module.loaded is False}
    if "nvidia" in absent:
        return None
    unload = [name for name in _HOLDERS if name not in absent]
    load = dict.fromkeys(("nvidia", "nvidia_uvm", *reversed(unload)))
    commands = (("modprobe", "-r", *unload), ("modprobe", "-a", *load))
    return Action(
        step="load-module", commands=commands, instruction=Instruction(code="reload-driver"), scope="jobs",
        disturbs=tuple(gpu.name for gpu in box.topology.gpus),
    )  # fmt: skip
