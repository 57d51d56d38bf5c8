"""Does the driver stay initialised while no program uses a GPU?"""

from __future__ import annotations

from dgxcheck.checks.engine.blame import part, setting_of_all
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import Check, per_gpu
from dgxcheck.checks.engine.finding import Judgement, Status, answered
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import BRANDS, VGA
from dgxcheck.facts.missing import need
from dgxcheck.facts.nvml.gpu import Gpu, GpuBoard, GpuModes
from dgxcheck.lazy_pattern import LazyPattern

_OF_DESKTOPS = LazyPattern(r"(?:NVIDIA )?(?:GeForce|TITAN|GTX|Quadro|RTX|[MG]TX?\d|MX ?\d|T\d{3,4}\b)")
"""Models for displays, by their names in NVML."""
_OF_CONSUMERS = LazyPattern(r"(?:NVIDIA )?(?:GeForce|TITAN|GTX)")
_BRANDS_OF_CONSUMERS = (BRANDS["GeForce"], BRANDS["GeForce RTX"], BRANDS["Titan"], BRANDS["Titan RTX"])


def _usually_off(box: Box) -> bool:
    """Are these the GPUs of a desktop or laptop? Display models all, and the only one, with a display, or consumers'.

    A driver that serves a display is never idle; servers full of workstation cards have none.
    """
    gpus = box.snapshot.listed_gpus
    if not gpus or not all(_is_model(box, gpu, _OF_DESKTOPS) for gpu in gpus):
        return False
    if len(gpus) == 1 or all(_is_model(box, gpu, _OF_CONSUMERS) for gpu in gpus):
        return True
    modes = (box.gpu(gpu.bdf).modes for gpu in gpus)
    return any(isinstance(each, GpuModes) and True in (each.display_mode, each.display_active) for each in modes)


def _is_model(box: Box, gpu: Gpu, names: LazyPattern) -> bool:
    """By name, which a table may cut, or a brand for consumers."""
    board = box.gpu(gpu.bdf).board
    by_name = isinstance(gpu.name, str) and names.match(gpu.name) is not None
    return by_name or (isinstance(board, GpuBoard) and board.brand in _BRANDS_OF_CONSUMERS)


def _is_vga(box: Box, gpu: Gpu) -> bool:
    """Is it a board with display outputs? Those for servers are 3D controllers, class 0302."""
    device = box.topology.device(gpu.bdf)
    code = None if device is None or device.function is None else device.function.class_code
    return isinstance(code, int) and code >> 8 == VGA


def _persistence(box: Box, modes: GpuModes) -> Judgement:
    """Warns if persistence mode is off: the driver then re-initialises a GPU for each first client and loses its
    volatile error counters and settings. Passes on desktops: all GPUs are GeForce or TITAN; or, with Quadro or RTX too,
    there is a single GPU or one of them drives a display; on other boxes of Quadro or RTX it can wait.

    Source: nvmlDeviceGetPersistenceMode; https://docs.nvidia.com/deploy/driver-persistence/index.html
    """
    persistence = need(modes.persistence)
    evidence = (answered(int(persistence), "nvmlDeviceGetPersistenceMode", modes.bdf),)
    if persistence:
        return Judgement(Status.PASS, "persistence mode is on", "on", "on", evidence=evidence)
    message, fault = "persistence mode is off", Fault.PERSISTENCE_OFF
    if _usually_off(box):
        message = f"{message}, as is usual on a desktop"
        return Judgement(Status.PASS, message, "off", evidence=evidence)
    if all(_is_model(box, gpu, _OF_DESKTOPS) or _is_vga(box, gpu) for gpu in box.snapshot.listed_gpus):
        fault = Fault.PERSISTENCE_UNSET
    return Judgement(Status.WARN, message, "off", "on", evidence=evidence, fault=fault)


CHECKS = (
    Check("driver.persistence", per_gpu("gpu_modes", _persistence), part("persistence mode"),
        setting_of_all("persistence mode"),
        remedy="run systemctl enable --now --no-reload nvidia-persistenced, or nvidia-smi -pm 1"),
)  # fmt: skip
