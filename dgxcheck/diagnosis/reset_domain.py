"""What hangs together: GPUs that are reset with each other, and what is taken out with them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.siblings import model_family
from dgxcheck.components.component import Component
from dgxcheck.topology.model import Device


def reset_set(box: Box, component: Component) -> tuple[Device, ...]:
    """GPUs that a reset of the component takes: those that NVLinks join to it, and the other half of its board; or all.

    nvidia-smi refuses to reset one GPU of several that NVLinks join, and resets K80 boards whole (its manual, -r). A
    link that is down does not tell where it goes; the NVLinks of each reference machine that has any join all its GPUs.
    """
    gpus = box.topology.gpus
    if box.choice is not None and box.choice.number("nvlink.links") is not None:
        return gpus
    found = {gpu.name for gpu in named(box, component) or gpus}
    while more := {
        b.name for a in gpus for b in gpus if a.name in found and b.name not in found and _joined(box, a, b)
    }:
        found |= more
    return tuple(gpu for gpu in gpus if gpu.name in found)


def can_reset(box: Box, component: Component, gone: Collection[str]) -> bool:
    """Is none of what a reset takes lost, and does NVML list the component's own? What no driver holds is no matter."""
    listed = all(gpu.index is not None for gpu in named(box, component))
    return listed and all(gpu.bdf not in gone for gpu in reset_set(box, component))


def named(box: Box, component: Component) -> tuple[Device, ...]:
    """GPUs that a component is, is of or serves."""
    return tuple(gpu for gpu in box.topology.gpus if gpu.bdf == component.bdf or gpu.name in component.shared_by)


def _joined(box: Box, a: Device, b: Device) -> bool:
    link = box.topology.link(a, b)
    return bool(link.nvlinks) or (_is_k80(a) and _is_k80(b) and link.pci == "PIX")


def _is_k80(gpu: Device) -> bool:
    function = gpu.function
    return function is not None and (function.vendor, function.device) == (0x10DE, 0x102D)


def _model(box: Box, gpus: Sequence[Device]) -> str:
    """Of the first; where it is lost and tells none, that of all the others, if it is one."""
    known = {name for gpu in box.topology.gpus if (name := model_family(box, gpu)) is not None}
    own = model_family(box, gpus[0]) if gpus else None
    return own or (known.pop() if len(known) == 1 else "")


def form_factor(box: Box, component: Component) -> str:
    """What a person takes out of the machine, by the GPU's model."""
    gpus = named(box, component)
    if not gpus and component.shared_by:  # of HCAs alone
        return f"{', '.join(component.shared_by)} and the riser"
    name = _model(box, gpus)
    where = f" in slot {component.slot}" if component.slot else ""
    if "DGXS" in name:
        return f"the card{where}, its NVLink bridge and its part of the water loop: with NVIDIA's support"
    if "SXM" in name or "HGX" in name:
        return "the GPU tray or the board on it: with the vendor's support"
    if not gpus and component.kind in ("link", "switch"):
        return f"the board or riser that carries {component.name}"
    if gpus and _is_k80(gpus[0]):
        halves = ", ".join(gpu.name for gpu in reset_set(box, component))
        return f"the card{where}, which carries {halves}, and its riser"
    return f"the card{where} and its riser"
