"""Which GPUs a reset takes along, and whether it is possible.

nvidia-smi(1), ``-r``: before Ampere, GPUs that NVLinks join are reset together; from Ampere on each by itself, on
machines with NVSwitches while Fabric Manager runs. Both GPUs of a K80 board are reset together.

NVIDIA Fabric Manager guide, reset capabilities: no virtual machine before Hopper resets GPUs that NVLinks join.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.components.component import Component
from dgxcheck.components.containment import is_k80
from dgxcheck.components.device_facts import architecture
from dgxcheck.components.locate import has_nvswitches
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.facts.nvml.gpu import vgpus
from dgxcheck.topology.model import Device
from dgxcheck.xid.table import AMPERE, NAMES


def gpus_of(box: Box, component: Component) -> tuple[Device, ...]:
    """GPUs that a component is, is a part of or joins; empty for components of no GPU."""
    ends = {component.bdf, component.peer_bdf} - {None}
    return tuple(gpu for gpu in box.topology.gpus if gpu.bdf in ends or gpu.name in component.shared_by)


def nvlinks_of_path(box: Box, path: Component) -> int | None:
    """How many NVLinks join the two GPUs of a path; None where either is not known, or how many."""
    ends = [device for bdf in (path.bdf, path.peer_bdf) if bdf and (device := box.topology.device(bdf)) is not None]
    return box.topology.link(*ends).nvlinks if len(ends) == 2 else None


def is_before_ampere(box: Box, gpu: Device) -> bool | None:
    """By its own architecture, else by that of another GPU of its model; None if both are unknown."""
    if (own := _before_ampere(box, gpu)) is not None:
        return own
    model = None if gpu.function is None else gpu.function.device
    alike = [other for other in box.topology.gpus if other.function is not None and other.function.device == model]
    answers = {_before_ampere(box, other) for other in alike or box.topology.gpus} - {None}
    return answers.pop() if len(answers) == 1 else None


def is_since(name: str, box: Box, gpus: Iterable[Device]) -> bool:
    """Is one of the GPUs known to be of this architecture (``hopper``) or a later one?"""
    numbers = (architecture(box, gpu.bdf or "") for gpu in gpus)
    return any(number is not None and number >= NAMES[name] for number in numbers)


def is_before(name: str, box: Box, gpus: Iterable[Device]) -> bool:
    """Are there GPUs, and all known to be of an earlier architecture?"""
    numbers = [architecture(box, gpu.bdf or "") for gpu in gpus]
    return bool(numbers) and all(number is not None and number < NAMES[name] for number in numbers)


def reset_domain(box: Box, component: Component, others: Collection[str | None] = ()) -> tuple[Device, ...]:
    """All GPUs that a reset for the component, and for ``others`` by bus id that NVML lists, takes, in the order of the
    matrix; all of the box for what is no GPU's.

    Before Ampere, and where the architecture is not known: all that NVLinks join, as NVSwitches do. A link that is down
    does not report its other end; the NVLinks of each reference machine that has any join all its GPUs.
    """
    domain = {gpu.name for gpu in gpus_of(box, component) or box.topology.gpus}
    domain |= {gpu.name for gpu in box.topology.gpus if gpu.bdf in others and gpu.index is not None}
    while more := {
        other.name
        for gpu in box.topology.gpus
        if gpu.name in domain
        for other in box.topology.gpus
        if other.name not in domain and _reset_together(box, gpu, other)
    }:
        domain |= more
    return tuple(gpu for gpu in box.topology.gpus if gpu.name in domain)


def can_reset(box: Box, component: Component, dead: Collection[str | None]) -> bool:
    """Does NVML list the component's GPUs, and is no GPU of the reset domain among the dead bus ids?

    A reset of all GPUs takes those too that are dead and no longer found, or that only a log names, and the one that is
    dead while nothing says which (None).
    """
    own = gpus_of(box, component)
    if (component.kind == "gpu" and not own and box.topology.gpus) or is_vgpu(box, component):
        return False
    domain = reset_domain(box, component)
    if guest(box) is not None and _linked(box, domain) and not is_since("hopper", box, domain):
        return False
    alone = len(own) == 1 and is_before_ampere(box, own[0]) is False
    out_of_sight = set(dead) - {gpu.bdf for gpu in box.topology.gpus}
    if out_of_sight and not alone and len(domain) == len(box.topology.gpus):
        return False
    return all(gpu.index is not None for gpu in own) and all(gpu.bdf not in dead for gpu in domain)


def _linked(box: Box, domain: Collection[Device]) -> bool:
    """Do NVLinks join them to GPUs of this machine, also where their own are all down? An A100 that is passed through
    alone, or a card without a bridge, has positions for links and none that is up."""
    positions = any(isinstance(gpu.nvlink_positions, int) and gpu.nvlink_positions for gpu in domain)
    return positions and any(row.up is True for row in rows(box.snapshot.nvlink))


def is_vgpu(box: Box, component: Component) -> bool:
    """Is one of its GPUs a share of a board, which is reset and tested on the host alone?"""
    shares = vgpus(box.snapshot.gpu, box.snapshot.gpu_board)
    return any(gpu.bdf in shares for gpu in gpus_of(box, component) or box.topology.gpus)


def _before_ampere(box: Box, gpu: Device) -> bool | None:
    number = architecture(box, gpu.bdf or "")
    return None if number is None else number < AMPERE


def _reset_together(box: Box, gpu: Device, other: Device) -> bool:
    link = box.topology.link(gpu, other)
    if is_k80(gpu) and is_k80(other):
        return link.pci == "PIX"
    if is_before_ampere(box, gpu) is False:
        return False
    if has_nvswitches(box) or link.nvlinks or (box.number("nvlink.links", gpu) and box.number("nvlink.links", other)):
        return True
    # GPUs with an NVLink that is up and of which nothing says where it ends, as in nvidia-smi nvlink -s
    up = (row for row in rows(box.snapshot.nvlink) if row.up is True)
    open_ends = {row.bdf for row in up if isinstance(row.remote_bdf, Missing)}
    return link.nvlinks is None and {gpu.bdf, other.bdf} <= open_ends
