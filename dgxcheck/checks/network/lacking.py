"""Which GPUs, or the GPUs of which NUMA node, lack an HCA that the others of the machine have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.engine.host_limits import in_container
from dgxcheck.checks.placement.misplaced import misplaced
from dgxcheck.checks.placement.placement import reference, wrong_gpus
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.tool_outputs import NvidiaSmiTopo
from dgxcheck.facts.typical import multimode
from dgxcheck.profiles.model import Profile
from dgxcheck.topology.model import Device, PciClass
from dgxcheck.topology.paths import NEAR

_FEWEST = 4
_OF_A_NODE: tuple[PciClass, ...] = (*NEAR, "PHB", "NODE")


def gpus_short_of_hcas(box: Box, adapters: Sequence[Device]) -> list[str]:
    """GPUs with fewer HCAs behind their switch than any GPU of the reference; none where a device is misplaced, nor
    where an HCA is far from its GPU because its DMA function is missing (gpu.dma).

    Of another machine only where most GPUs have HCAs of their own, or share each with as many other GPUs, and where
    several lack one three quarters: machines are built with fewer adapters than GPUs, too. Without a reference: than
    most GPUs, on boards that join each GPU with several by NVLinks; an imported matrix shows such ones too.
    """
    profile, gpus = reference(box), box.reference_gpus
    alike = not isinstance(profile, Judgement)
    chosen = _same_gpus(box, adapters) if isinstance(profile, Judgement) else profile
    if not box.topology.functions:
        short = _short_in_matrix(box.snapshot.stated)
        return [name if (gpu := box.topology.device(name)) is None else gpu.name for name in short]
    links = {(gpu.name, nic.name): box.topology.link(gpu, nic).pci for gpu in gpus for nic in adapters}
    if None in links.values() or without_dma(adapters) or (chosen is None and _is_hidden(box, adapters)):
        return []
    if chosen is not None and alike and _is_misplaced(box, chosen, adapters):
        return []
    joined = [sum(bool(box.topology.link(gpu, other).nvlinks) for other in gpus if other != gpu) for gpu in gpus]
    near = [[gpu.name for gpu in gpus if links[gpu.name, nic.name] in NEAR] for nic in adapters]
    names = [gpu.name for gpu in gpus]
    least = _usual(names, near, joined) if chosen is None else _least(chosen, NEAR)
    short, are_odd = _short(names, near, least)
    return short if alike or are_odd else []


def _short_in_matrix(stated: NvidiaSmiTopo | Missing) -> list[str]:
    if isinstance(stated, Missing):
        return []
    nics = nics_of(stated)
    gpus = [name for name in stated.names if name not in nics]
    rows = [[stated.labels.get((gpu, name), "") for name in gpus] for gpu in gpus]
    joined = [sum(str(label).startswith("NV") for label in row) for row in rows]
    near = [[gpu for gpu in gpus if stated.labels.get((gpu, nic)) in NEAR] for nic in nics]
    is_whole = all((gpu, nic) in stated.labels for gpu in gpus for nic in nics)
    short, are_odd = _short(gpus, near, _usual(gpus, near, joined))
    return short if are_odd and is_whole else []


def nics_of(stated: NvidiaSmiTopo) -> list[str]:
    """Names of the NICs of a matrix, in which a GPU has its number or a bus id."""
    return [name for name in stated.names if not name.startswith("GPU") and ":" not in name]


def _usual(gpus: Sequence[str], near: Sequence[Sequence[str]], joined: Sequence[int]) -> int:
    """The HCAs of most GPUs; 0 of cards, which have NVLinks to one other or to none (``joined``)."""
    meshed = len(gpus) >= _FEWEST and min(joined) > 1
    return multimode(sum(gpu in its for its in near) for gpu in gpus)[0] if meshed else 0


def _short(gpus: Sequence[str], near: Sequence[Sequence[str]], least: int) -> tuple[list[str], bool]:
    """The GPUs that fewer HCAs are near, and whether these are few and the others all alike."""
    short = [gpu for gpu in gpus if sum(gpu in its for its in near) < least]
    shared = max(map(len, near), default=0)
    own = shared < 2 or (len(short) == shared and all(len(its) in (0, shared) for its in near))
    few = 2 * len(short) < len(gpus) if len(short) == 1 else 4 * len(short) <= len(gpus)
    return short, own and few


def without_dma(adapters: Sequence[Device]) -> list[Device]:
    """HCAs of the kind that has DMA functions elsewhere, whose own is not there."""
    having = {nic.function.device for nic in adapters if nic.dma is not None and nic.function is not None}
    return [nic for nic in adapters if nic.dma is None and nic.function is not None and nic.function.device in having]


def node_short_of_hcas(box: Box, adapters: Sequence[Device]) -> int | None:
    """The NUMA node with fewer adapters of a model than GPUs, where every other one has one of it for each GPU.

    Of machines whose GPUs share no switch with an HCA (GB200), and only where its GPUs reach fewer HCAs within it than
    in the reference: a single BlueField is no sign of another that is missing.
    """
    profile = _same_gpus(box, adapters)
    if profile is None or _least(profile, NEAR):
        return None
    gpus = Counter(gpu.numa_node for gpu in box.topology.gpus if isinstance(gpu.numa_node, int))
    least = _least(profile, _OF_A_NODE)
    fewer = {gpu.numa_node for gpu in box.topology.gpus
             if sum(box.topology.link(gpu, nic).pci in _OF_A_NODE for nic in adapters) < least}  # fmt: skip
    cards = {(nic.function.device, nic.numa_node, nic.function.bdf[:-2]) for nic in adapters if nic.function}
    for model in {model for model, _, _ in cards}:
        number = Counter(node for other, node, _ in cards if other == model)
        lacking = [node for node, gpus_there in gpus.items() if number[node] != gpus_there]
        if len(lacking) == 1 < len(gpus) and number[lacking[0]] < gpus[lacking[0]] and lacking[0] in fewer:
            return lacking[0]
    return None


def _is_hidden(box: Box, adapters: Sequence[Device]) -> bool:
    """Does a guest or container see only what it was given?"""
    return guest(box) is not None or in_container(box) or not adapters


def _same_gpus(box: Box, adapters: Sequence[Device]) -> Profile | None:
    """The reference with the same GPUs; None where only some devices are seen."""
    unknown = box.choice is None or not box.choice.profile.wiring
    return None if _is_hidden(box, adapters) or box.choice is None or unknown else box.choice.profile


def _is_misplaced(box: Box, profile: Profile, adapters: Sequence[Device]) -> bool:
    gpus = box.reference_gpus
    wrong_hcas = misplaced(gpus, adapters, box.topology, profile.wiring, lambda wiring: wiring.to_hcas)
    wrong = wrong_gpus(box, profile)
    return wrong_hcas is None or bool(wrong_hcas.devices) or wrong is None or bool(wrong.devices)


def _least(profile: Profile, near: Sequence[PciClass]) -> int:
    return min(sum(wiring.to_hcas.get(pci, 0) for pci in near) for wiring in profile.wiring)
