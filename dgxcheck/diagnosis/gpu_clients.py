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
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device

_CANDIDATES = ("nvidia-persistenced", "nvidia-dcgm", "dcgm", "dcgm-exporter")
"""systemd units; ``dcgm`` is the older name of nvidia-dcgm."""
_UNITS: Mapping[str, str] = {
    "nvidia-persistenced": "nvidia-persistenced", "nv-hostengine": "nvidia-dcgm", "dcgm-exporter": "dcgm-exporter",
}  # fmt: skip
"""By the program that NVML shows on a GPU."""
_SCREENS = ("Xorg", "X", "gnome-shell", "Xwayland")


def services(box: Box, gpus: Sequence[Device], reload: bool = False) -> tuple[str, ...]:
    """Candidates for ``systemctl stop``, those that are seen on the GPUs first: no fact lists the units of the host.

    Fabric Manager is stopped to reload the driver, and before Ampere, where a reset takes the NVSwitches along; from
    Ampere on a reset of one GPU needs it running.
    """
    processes = [_name(process) for gpu in gpus for process in _processes(box, gpu)]
    on_gpus = [unit for name in processes if (unit := _UNITS.get(name)) is not None]
    host = box.snapshot.host
    nvsm = ["nvsm"] if isinstance(host, Host) and not isinstance(host.dgx_release, Missing) else []
    with_switches = has_nvswitches(box) and (reload or any(is_before_ampere(box, gpu) is True for gpu in gpus))
    fabric = ["nvidia-fabricmanager"] if with_switches else []
    return tuple(dict.fromkeys([*on_gpus, *_CANDIDATES, *nvsm, *fabric]))


def device_nodes(box: Box, gpus: Sequence[Device]) -> tuple[str, ...]:
    """``/dev/nvidia<minor>`` of those GPUs whose minor is known."""
    nvml = box.nvml
    minors = {} if isinstance(nvml, Missing) else {row.bdf: row.minor for row in nvml.gpus}
    known = (minors.get(gpu.bdf or "") for gpu in gpus)
    return tuple(f"/dev/nvidia{minor}" for minor in known if isinstance(minor, int))


def drives_a_display(box: Box, gpus: Sequence[Device]) -> bool:
    """Is a display active on one of them, or does an X server or a desktop use it?"""
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
