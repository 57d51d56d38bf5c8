"""What hangs together: GPUs that are reset with each other, and what is taken out with them."""

from __future__ import annotations

from dgxcheck.checks.check import Box
from dgxcheck.checks.siblings import family
from dgxcheck.diagnosis.component import Component
from dgxcheck.topology.model import Device


def reset_set(box: Box, component: Component) -> tuple[Device, ...]:
    """GPUs that a reset of the component takes: those that NVLinks join to it, and the other half of its board; or all.

    nvidia-smi refuses to reset one GPU of several that NVLinks join, and resets K80 boards whole (its manual, -r).
    """
    gpus = box.topology.gpus
    named = [gpu for gpu in gpus if gpu.bdf == component.bdf or gpu.name in component.shared_by] or gpus
    found = {gpu.name for gpu in named}
    while more := {
        b.name for a in gpus for b in gpus if a.name in found and b.name not in found and _joined(box, a, b)
    }:
        found |= more
    return tuple(gpu for gpu in gpus if gpu.name in found)


def _joined(box: Box, a: Device, b: Device) -> bool:
    link = box.topology.link(a, b)
    return bool(link.nvlinks) or (_is_k80(a) and _is_k80(b) and link.pci == "PIX")


def _is_k80(gpu: Device) -> bool:
    function = gpu.function
    return function is not None and (function.vendor, function.device) == (0x10DE, 0x102D)


def _only_family(box: Box) -> str:
    """For a GPU that is lost and tells no model: that of all the others, if it is one."""
    known = {name for gpu in box.topology.gpus if (name := family(box, gpu)) is not None}
    return known.pop() if len(known) == 1 else ""


def form_factor(box: Box, component: Component) -> str:
    """What a person takes out of the machine, by the GPU's model."""
    gpu = next((gpu for gpu in box.topology.gpus if gpu.bdf == component.bdf or gpu.name in component.shared_by), None)
    name = "" if gpu is None else family(box, gpu) or _only_family(box)
    where = f" in slot {component.slot}" if component.slot else ""
    if "DGXS" in name:
        return f"the card{where}, its NVLink bridge and its part of the water loop: with NVIDIA's support"
    if "SXM" in name or "HGX" in name:
        return "the GPU tray or the board on it: with the vendor's support"
    if component.kind == "link" and gpu is None:
        return f"the board or riser that carries {component.name}"
    return f"the card{where} and its riser"
