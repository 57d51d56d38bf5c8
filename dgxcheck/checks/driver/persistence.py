"""Does the driver stay initialised while no program uses a GPU?"""

from __future__ import annotations

import re

from dgxcheck.checks.engine.blame import part, setting_of_all
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Judgement, Status, answered
from dgxcheck.checks.engine.per_gpu import need, per_gpu
from dgxcheck.facts.gpu import GpuBoard, GpuModes
from dgxcheck.facts.ids import BRANDS
from dgxcheck.facts.missing import Missing

_OF_DESKTOPS = re.compile(r"(?:NVIDIA )?(?:GeForce|TITAN|GTX|Quadro|RTX|[MG]TX?\d|MX ?\d|T\d{3,4}\b)")
"""Models for displays, by their names in NVML."""
_BRANDS_OF_DESKTOPS = (BRANDS["GeForce"], BRANDS["GeForce RTX"], BRANDS["Titan"], BRANDS["Titan RTX"])


def _is_desktop(box: Box) -> bool:
    """Is the only GPU one for desktops and laptops? Where a display is on it, its driver is never idle."""
    names = [] if isinstance(box.nvml, Missing) else [gpu.name for gpu in box.nvml.gpus]
    if len(box.topology.gpus) != 1 or len(names) != 1:
        return False
    board = box.gpu(box.topology.gpus[0]).board
    by_name = isinstance(names[0], str) and _OF_DESKTOPS.match(names[0]) is not None
    return by_name or (isinstance(board, GpuBoard) and board.brand in _BRANDS_OF_DESKTOPS)


def _persistence(box: Box, modes: GpuModes) -> Judgement:
    persistence = need(modes.persistence)
    evidence = (answered(int(persistence), "nvmlDeviceGetPersistenceMode", modes.bdf),)
    if persistence:
        return Judgement(Status.PASS, "persistence mode is on", "on", "on", evidence=evidence)
    message, fault = "persistence mode is off", Fault.PERSISTENCE_OFF
    if _is_desktop(box):
        message = f"{message}, as is usual for the only GPU of a desktop"
        return Judgement(Status.PASS, message, "off", evidence=evidence)
    return Judgement(Status.WARN, message, "off", "on", evidence=evidence, fault=fault)


CHECKS = (
    Check(
        id="driver.persistence",
        rule="Warns if persistence mode is off: the driver then re-initialises a GPU for each first client and loses"
        " its volatile error counters and settings. Not where the only GPU is a GeForce, TITAN, Quadro or RTX.",
        source="nvmlDeviceGetPersistenceMode; https://docs.nvidia.com/deploy/driver-persistence/index.html",
        remedy="run systemctl enable --now nvidia-persistenced, or nvidia-smi -pm 1",
        judge=per_gpu("gpu_modes", _persistence),
        blames=part("persistence mode"),
        shared=setting_of_all("persistence mode"),
    ),
)
