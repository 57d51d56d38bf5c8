"""Single steps as actions: drain, stop jobs, reset, restart a service, load a module.

nvidia-smi(1), ``-r``: no application may use the GPU, no X server or other client either. ``fuser -v`` lists every
client, ``--query-compute-apps`` compute programs alone.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection, Sequence

from dgxcheck.checks.engine.box import Box, guest, mig_enabled
from dgxcheck.checks.engine.host_limits import hypervisor
from dgxcheck.checks.network.ports import UP, listed_ports, role
from dgxcheck.components.component import Component
from dgxcheck.components.containment import is_k80
from dgxcheck.components.locate import all_gpus, has_nvswitches
from dgxcheck.diagnosis.action import Action, Commands, Instruction, Value, on_gpus
from dgxcheck.diagnosis.clients import FABRIC_UNIT, IMEX, drives_a_display, holds_vgpus, minors, running_units, services
from dgxcheck.diagnosis.reset_domain import gpus_of, is_before, is_before_ampere, is_since
from dgxcheck.facts.bdf import bus_order, for_smi
from dgxcheck.facts.host import Memlock
from dgxcheck.facts.missing import Missing, rows, text_of
from dgxcheck.facts.nvml.gpu import REGISTERED, Fabric, GpuModes
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.topology.model import Device

_OLD_PEER_MEMORY = "nv_peer_mem"
"""Excludes nvidia_peermem, and holds the driver as well where it is loaded."""
_OF_VGPUS = "nvidia_vgpu_vfio"
"""On the host of vGPUs."""
_HOLDERS = (
    "nvidia_fs", "gdrdrv", _OLD_PEER_MEMORY, "nvidia_peermem", "nvidia_uvm", "nvidia_drm", "nvidia_modeset", _OF_VGPUS,
    "nvidia",
)  # fmt: skip
"""Modules in the order in which they can be unloaded, GPUDirect Storage and GDRCopy first. modprobe(8) passes over one
that is not installed.
"""


def drain(box: Box) -> Action:
    """With the scheduler whose daemon runs here: scontrol(1) of Slurm, pbsnodes(8B) of OpenPBS, kubectl; else by hand.

    kubectl: https://kubernetes.io/docs/tasks/administer-cluster/safely-drain-node/
    """
    hostname, daemons = _hostname(box), _daemons(box)
    node = hostname.partition(".")[0]
    slurm, pbs = ("scontrol", "update", f"NodeName={node}"), ("pbsnodes", "-o", node)
    by_scheduler = {
        "slurmd": ((*slurm, "State=DRAIN", "Reason=dgxcheck"), (*slurm, "State=RESUME")),
        "pbs_mom": (pbs, ("pbsnodes", "-r", node)),
        "pbs": (pbs, ("pbsnodes", "-r", node)),
        "kubelet": (("kubectl", "cordon", hostname), ("kubectl", "uncordon", hostname)),
    }
    both = next((argvs for daemon, argvs in by_scheduler.items() if daemon in daemons and node), None)
    if both is None:
        return Action(step="drain", instruction=Instruction(code="drain-host"))
    command, back = both
    instruction = Instruction(code="drain-scheduler", values={"back": shlex.join(back)})
    return Action(step="drain", commands=(command,), instruction=instruction)


def _hostname(box: Box) -> str:
    """Slurm and PBS call a node by its first label, a kubelet by all of it."""
    return text_of(box.snapshot.known_host.hostname)


def _daemons(box: Box) -> frozenset[str]:
    memlock = box.snapshot.memlock
    listed = {daemon.name for daemon in memlock.daemons} if isinstance(memlock, Memlock) else set()
    return (running_units(box) or frozenset()) | listed


def _evict(box: Box) -> Commands:
    """Kubernetes starts what is stopped on a node again: pods are evicted from the whole node instead."""
    node = _hostname(box)
    if "kubelet" not in _daemons(box) or not node:
        return ()
    return (("kubectl", "drain", node, "--ignore-daemonsets", "--delete-emptydir-data"),)


def stop_clients(box: Box, gpus: Sequence[Device], with_switches: bool) -> Action:
    """All that keeps these GPUs open; ``with_switches``: and the NVSwitches, which a reset of all GPUs takes along."""
    with_switches |= _all_of_a_fabric(box, gpus)
    nodes = [f"/dev/nvidia{minor}" for minor in minors(box, gpus)] or ["/dev/nvidiactl"]
    display, evict = drives_a_display(box, gpus), _evict(box)
    to_stop, units_read = services(box, gpus, with_switches), running_units(box) is not None
    commands = [*evict]
    commands += [("systemctl", "isolate", "multi-user.target")] if display else []
    commands += [("systemctl", "stop", *to_stop)] if units_read and to_stop else []
    values: dict[str, Value] = {} if units_read else {"services": to_stop}
    values |= {"node": _hostname(box)} if evict else {}
    values |= {"imex": 1} if IMEX in to_stop else {}
    values |= {"machines": 1} if holds_vgpus(box, gpus) or (with_switches and hypervisor(box)) else {}
    code = "stop-gpu-clients-and-display" if display else "stop-gpu-clients"
    disturbed = box.topology.gpus if evict or IMEX in to_stop else gpus
    return on_gpus("stop-jobs", code, disturbed, (*commands, ("fuser", "-v", *nodes)), values)


def stop_programs(box: Box, component: Component) -> Action:
    """Programs on a GPU that hold what others lack."""
    gpus = gpus_of(box, component)
    command = ("nvidia-smi", *_chosen(gpus), "--query-compute-apps=pid,name,used_memory", "--format=csv")
    return on_gpus("stop-jobs", "stop-gpu-programs", gpus, (command,))


def stop_load(box: Box, component: Component, hot: Collection[str]) -> Action:
    """Programs on a GPU that overheats; on those with these names where the host's cooling is to blame, or on all."""
    gpus = all_gpus(box, "")
    gpus = replace(gpus, shared_by=tuple(name for name in gpus.shared_by if name in hot) or gpus.shared_by)
    stop = stop_programs(box, component if gpus_of(box, component) else gpus)
    evict = _evict(box)
    disturbs = tuple(gpu.name for gpu in box.topology.gpus) if evict else stop.disturbs
    commands = (*evict, *stop.commands)
    return replace(stop, commands=commands, disturbs=disturbs, instruction=Instruction(code="stop-load"))


def _chosen(gpus: Sequence[Device]) -> tuple[str, ...]:
    """``-i`` with these GPUs; nothing where one of them has neither bus id nor number."""
    ids = [for_smi(gpu.bdf) for gpu in gpus]
    return ("-i", ",".join(ids)) if all(ids) and ids else ()


def reset(box: Box, gpus: Sequence[Device], with_switches: bool) -> Action:
    """nvidia-smi(1): without ``-i`` all GPUs in one command; ``with_switches``: the NVSwitches too, as with all GPUs
    of a fabric (DU-09883: Fabric Manager is stopped for it).

    A text may show some GPUs of many: without the PCI tree only those that it names are reset, unless NVLinks join
    GPUs before Ampere, and where it names none there is no command to copy but that of NVSwitches, which resets all.
    """
    with_switches |= _all_of_a_fabric(box, gpus)
    linked = len(gpus) > 1 and not any(gpu.nvlink_positions in (None, 0) for gpu in gpus)
    joined = linked and all(is_before_ampere(box, gpu) is not False for gpu in gpus)
    whole = joined or not isinstance(box.snapshot.pci, Missing)
    everything = whole and len(gpus) == len(box.topology.gpus)
    ids = () if everything else _chosen(gpus)
    everything |= with_switches
    how = ("bus",) if any(_asks_for_a_bus_reset(box, gpu) for gpu in gpus) else ()
    code = "reset-board" if all(map(is_k80, gpus)) else "reset-together"
    if with_switches:
        code = "reset-all-with-switches"
    elif has_own_fabric(box):
        code = "reset-with-fabric-manager"
    elif len(gpus) == 1:
        code = "reset-one"
    values: dict[str, Value] = {"chosen": f" {' '.join(ids)}"} if ids else {}
    values |= {"mig": 1} if mig_enabled(box, *(gpu.bdf for gpu in gpus)) else {}
    values |= {"switches": ""} if is_since("blackwell", box, gpus) else {}
    if not (ids or everything):
        return on_gpus("reset-gpu", "reset-named", gpus)
    return on_gpus("reset-gpu", code, gpus, (("nvidia-smi", "-r", *how, *ids),), values)


def dcgm_diagnostic(box: Box, component: Component) -> tuple[tuple[str, ...], tuple[Device, ...]]:
    """The diagnostic and the GPUs that it loads: those of the component's kind of board, else of the most common one,
    where there are several kinds, as with a GPU for the display beside four A100. DCGM tests one kind at a time.

    DCGM, AreAllGpuIdsSameSku: ids on PCI and those of the subsystem; its numbers of GPUs are NVML's, in bus order: of
    all GPUs where one is not listed now, since it runs once that one responds again.
    """
    gpus = box.topology.gpus
    subsystems = [None if gpu.function is None else gpu.function.subsystem_device for gpu in gpus]
    known = all(isinstance(each, int) for each in subsystems)
    boards = [(box.board_id(gpu), each if known else None) for gpu, each in zip(gpus, subsystems, strict=True)]
    kinds = gathered((board, gpu) for board, gpu in zip(boards, gpus, strict=True) if board[0])
    if len(kinds) < 2:
        return _DIAGNOSTIC, gpus
    own = gpus_of(box, component)
    tested = next((each for each in kinds.values() if {*own} & {*each}), max(kinds.values(), key=len))
    ordered = sorted(gpus, key=lambda gpu: bus_order(gpu.bdf or ""))
    listed = {gpu.name: gpu.index for gpu in gpus if isinstance(gpu.index, int)}
    whole = len(listed) == len(gpus)
    numbers = sorted(listed[gpu.name] if whole else ordered.index(gpu) for gpu in tested)
    return (*_DIAGNOSTIC, "-i", ",".join(map(str, numbers))), tuple(tested)


_DIAGNOSTIC = ("dcgmi", "diag", "-r", "3")


def _all_of_a_fabric(box: Box, gpus: Sequence[Device]) -> bool:
    return len(gpus) == len(box.topology.gpus) > 1 and has_own_fabric(box)


_BUS_RESET = 6
"""``NVML_GPU_RECOVERY_ACTION_BUS_RESET``; nvidia-smi(1): ``-r bus``"""


def _asks_for_a_bus_reset(box: Box, gpu: Device) -> bool:
    modes = box.gpu(gpu).modes
    return isinstance(modes, GpuModes) and modes.recovery_action == _BUS_RESET


def has_own_fabric(box: Box) -> bool:
    """Does Fabric Manager of this machine join its GPUs? NVSwitches of HGX B300 are not seen where the functions that
    lead to them are not, but the GPUs are registered in a fabric that ends at the machine. So are those of a guest, by
    its host's Fabric Manager unless its own runs or is to run."""
    fabrics = [row.fabric for row in rows(box.snapshot.gpu_modes)]
    registered = any(isinstance(each, Fabric) and each.state == REGISTERED and not each.domain for each in fabrics)
    units = [row for row in rows(box.snapshot.units) if row.name == FABRIC_UNIT]
    managed = any(True in (row.running, row.enabled) for row in units) and is_since("blackwell", box, box.topology.gpus)
    return has_nvswitches(box) or (registered and (guest(box) is None or managed))


def restart(box: Box, component: Component) -> Action:
    """The subnet manager, where it runs, or Fabric Manager, which can abort CUDA programs everywhere.

    DU-09883: ``ABORT_CUDA_JOBS_ON_FM_EXIT=1`` in shipped configurations.
    """
    if component.kind == "subnet-manager":
        instruction = Instruction(code="restart-subnet-manager")
        return Action(step="restart-service", instruction=instruction, scope="fabric")
    commands: Commands = (("systemctl", "restart", FABRIC_UNIT),)
    code = "restart-fabric-manager"
    gpus = box.topology.gpus
    if restarts_with_a_reset(box, component):
        commands, code = (("nvidia-smi", "-r"), ("systemctl", "start", FABRIC_UNIT)), "restart-fabric-manager-and-gpus"
    values: dict[str, Value] = {"machines": 1} if hypervisor(box) else {}
    values |= {"mig": 1} if mig_enabled(box, *(gpu.bdf for gpu in gpus)) else {}
    return on_gpus("restart-service", code, gpus, commands, values)


def restarts_with_a_reset(box: Box, component: Component) -> bool:
    """Fabric Manager from Hopper on: CUDA jobs outlive its end, and the GPUs are reset before it is started again
    (DU-09883, initializing NVSwitch and NVLink; https://github.com/NVIDIA/nvshmem/issues/40). Started without a reset
    it binds no multicast memory (https://github.com/NVIDIA/nccl/issues/976): so of an unknown architecture, too.
    """
    return component.kind != "subnet-manager" and not is_before("hopper", box, box.topology.gpus)


def restart_imex(box: Box) -> Action:
    """It ends jobs on all nodes of the NVLink domain."""
    return on_gpus("restart-service", "restart-imex", box.topology.gpus, (("systemctl", "restart", "nvidia-imex"),))


def ask_subnet_manager(box: Box, port: str) -> Commands:
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
    absent |= {_OLD_PEER_MEMORY, _OF_VGPUS} - {module.name for module in box.modules if module.loaded is True}
    unload = [name for name in _HOLDERS if name not in absent]
    load = dict.fromkeys(("nvidia", "nvidia_uvm", *reversed(unload)))
    commands = (("modprobe", "-r", *unload), ("modprobe", "-a", *load))
    return on_gpus("load-module", "reload-driver", box.topology.gpus, commands)
