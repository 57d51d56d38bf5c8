"""What keeps GPUs open, and is stopped before they are reset: units of systemd, displays, programs.

NVIDIA's MIG guide names nvsm and dcgm on DGX systems.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.locate import has_nvswitches
from dgxcheck.diagnosis.form_factor import is_tray_of_a_rack
from dgxcheck.diagnosis.reset_domain import is_before_ampere
from dgxcheck.facts.missing import Missing, rows, text_of
from dgxcheck.facts.nvml.gpu import GpuModes, GpuProcess
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
_OF_VGPUS = ("nvidia-vgpu-mgr", "nvidia-vgpud")
"""On the host of vGPUs, stopped once its virtual machines are shut down. nvidia-vgpud ends when vGPUs are
configured, and is then no unit that runs.
"""
_HOST_VGPU = 3
"""``NVML_GPU_VIRTUALIZATION_MODE_HOST_VGPU``"""
FABRIC_UNIT = "nvidia-fabricmanager"
_DISPLAYS = ("display-manager", "gdm", "gdm3", "lightdm", "sddm")
_UNITS: Mapping[str, str] = {
    "nvidia-persistenced": "nvidia-persistenced", "nv-hostengine": "nvidia-dcgm", "dcgm-exporter": "dcgm-exporter",
}  # fmt: skip
"""By the program that NVML shows on a GPU."""
_SCREENS = ("Xorg", "X", "gnome-shell", "Xwayland")


def services(box: Box, gpus: Sequence[Device], with_switches: bool) -> tuple[str, ...]:
    """What to give to ``systemctl stop``: the units that run; where that is not known the candidates, those that are
    seen on the GPUs first.

    Fabric Manager is stopped to reload the driver or to reset NVSwitches (``with_switches``), and before Ampere, where
    a reset takes the NVSwitches along; from Ampere on a reset of one GPU needs it running.
    """
    processes = [_name(process) for gpu in gpus for process in _processes(box, gpu)]
    on_gpus = [unit for name in processes if (unit := _UNITS.get(name)) is not None]
    nvsm = [] if isinstance(box.snapshot.known_host.dgx_release, Missing) else ["nvsm"]
    old = any(is_before_ampere(box, gpu) is True for gpu in gpus)
    fabric = [FABRIC_UNIT] if with_switches or (has_nvswitches(box) and old) else []
    vgpus = _OF_VGPUS if holds_vgpus(box, gpus) else ()
    if (running := running_units(box)) is not None:
        return tuple(unit for unit in (*_CLIENTS, *fabric, *vgpus) if unit in running)
    on = {unit.name for unit in rows(box.snapshot.units) if unit.enabled is True}
    enabled = [unit for unit in _CLIENTS if unit in on or (unit == IMEX and is_tray_of_a_rack(box))]
    return tuple(dict.fromkeys([*on_gpus, *enabled, *_CANDIDATES, *nvsm, *fabric, *vgpus]))


def holds_vgpus(box: Box, gpus: Sequence[Device]) -> bool:
    """Are virtual machines to be shut down first, which have vGPUs on one of these GPUs?"""
    held = {row.bdf for row in rows(box.snapshot.gpu_board) if row.virtualization == _HOST_VGPU}
    return any(gpu.bdf in held for gpu in gpus)


def running_units(box: Box) -> frozenset[str] | None:
    """Of the units that matter here those that run; None where that is not known."""
    units = rows(box.snapshot.units)
    if all(isinstance(unit.running, Missing) for unit in units):
        return None
    return frozenset(unit.name for unit in units if unit.running is True)


def minors(box: Box, gpus: Sequence[Device]) -> list[int]:
    """Those of the GPUs whose minor number, that of ``/dev/nvidia<minor>``, is known."""
    listed = {row.bdf: row.minor for row in box.snapshot.listed_gpus}
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
    return text_of(process.name).rpartition("/")[2].partition(" ")[0]
