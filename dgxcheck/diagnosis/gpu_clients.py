"""What keeps GPUs open and is to be stopped before a reset or before the driver is unloaded.

nvidia-smi(1), ``-r``: no application may use the GPU, no X server or other client either. ``fuser -v`` lists every
client, ``--query-compute-apps`` compute programs alone. NVIDIA's MIG guide names nvsm and dcgm on DGX systems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.locate import has_nvswitches
from dgxcheck.diagnosis.reset_domain import is_before_ampere
from dgxcheck.facts.gpu import GpuActivity, GpuModes, GpuProcess
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.topology.model import Device

_CANDIDATES = ("nvidia-persistenced", "nvidia-dcgm", "dcgm", "dcgm-exporter")
"""systemd units; ``dcgm`` is the older name of nvidia-dcgm."""
_CLIENTS = (
    *_CANDIDATES, "nvidia-dcgm-exporter", "nvidia_gpu_exporter", "nvsm", "nvsm-core", "nvsm-mqtt", "nvsm-api-gateway",
    "nvidia-imex",
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
    fabric = ["nvidia-fabricmanager"] if has_nvswitches(box) and (with_switches or old) else []
    running = running_units(box)
    if running is not None:
        return tuple(unit for unit in (*_CLIENTS, *fabric) if unit in running)
    enabled = [unit for unit in _CLIENTS if unit in _enabled(box)]
    return tuple(dict.fromkeys([*on_gpus, *enabled, *_CANDIDATES, *nvsm, *fabric]))


def running_units(box: Box) -> frozenset[str] | None:
    """Of the units that matter here those that run; None where that is not known."""
    units = box.snapshot.units
    if isinstance(units, Missing) or all(isinstance(unit.running, Missing) for unit in units):
        return None
    return frozenset(unit.name for unit in units if unit.running is True)


def _enabled(box: Box) -> frozenset[str]:
    return frozenset(unit.name for unit in rows(box.snapshot.units) if unit.enabled is True)


def device_nodes(box: Box, gpus: Sequence[Device]) -> tuple[str, ...]:
    """``/dev/nvidia<minor>`` of those GPUs whose minor is known."""
    nvml = box.nvml
    minors = {} if isinstance(nvml, Missing) else {row.bdf: row.minor for row in nvml.gpus}
    known = (minors.get(gpu.bdf or "") for gpu in gpus)
    return tuple(f"/dev/nvidia{minor}" for minor in known if isinstance(minor, int))


def drives_a_display(box: Box, gpus: Sequence[Device]) -> bool:
    """Is a display active on one of them, or does an X server or a desktop use it?

    Where NVML does not list what runs on the GPUs, a display manager that runs counts.
    """
    if all(isinstance(box.gpu(gpu).processes, Missing) for gpu in gpus):
        return any(unit in _DISPLAYS for unit in running_units(box) or ())
    for gpu in gpus:
        modes = box.gpu(gpu).modes
        if isinstance(modes, GpuModes) and modes.display_active is True:
            return True
        if any(_name(process) in _SCREENS for process in _processes(box, gpu)):
            return True
    return False


def _processes(box: Box, gpu: Device) -> list[GpuProcess]:
    activity = box.gpu(gpu).processes
    if not isinstance(activity, GpuActivity):
        return []
    lists = (activity.compute, activity.graphics)
    return [process for processes in lists if not isinstance(processes, Missing) for process in processes]


def _name(process: GpuProcess) -> str:
    return process.name.rpartition("/")[2].partition(" ")[0] if isinstance(process.name, str) else ""
