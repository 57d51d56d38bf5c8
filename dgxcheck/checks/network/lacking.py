"""Which GPUs, or the GPUs of which NUMA node, lack an HCA that the others of the machine have."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement
from dgxcheck.checks.engine.host_limits import is_assigned
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

    Of another machine with the same GPUs only where most GPUs have HCAs of their own, which no other GPU shares, and
    where several lack one three quarters: machines are built with fewer adapters than GPUs, too. Without a PCI tree
    those of an imported matrix.
    """
    if not box.topology.functions:
        short = _short_in_matrix(box.snapshot.stated)
        return [name if (gpu := box.topology.device(name)) is None else gpu.name for name in short]
    profile, gpus = reference(box), box.reference_gpus
    alike = not isinstance(profile, Judgement)
    chosen = _same_gpus(box, adapters) if isinstance(profile, Judgement) else profile
    if chosen is None or any(isinstance(device.path, Missing) for device in (*gpus, *adapters)):
        return []
    if without_dma(adapters) or (alike and _is_misplaced(box, chosen, adapters)):
        return []
    near = [[gpu.name for gpu in gpus if box.topology.link(gpu, nic).pci in NEAR] for nic in adapters]
    short = [gpu.name for gpu in gpus if sum(gpu.name in its for its in near) < _least(chosen, NEAR)]
    own = all(len(its) < 2 for its in near)
    return short if alike or (own and _are_few(short, gpus)) else []


def _are_few(short: Sequence[str], gpus: Sequence[object]) -> bool:
    return 2 * len(short) < len(gpus) if len(short) == 1 else 4 * len(short) <= len(gpus)


def _short_in_matrix(stated: NvidiaSmiTopo | Missing) -> list[str]:
    """GPUs with fewer NICs behind their switch than most, where each NIC is one GPU's or as many share each; of boards
    that join each GPU with several by NVLinks, not of cards, which have NVLinks to one other or to none."""
    if isinstance(stated, Missing):
        return []
    nics = nics_of(stated)
    gpus = [name for name in stated.names if name not in nics]
    joined = [sum(str(stated.labels.get((gpu, name))).startswith("NV") for name in gpus) for gpu in gpus]
    is_whole = all((gpu, nic) in stated.labels for gpu in gpus for nic in nics)
    if not nics or len(gpus) < _FEWEST or min(joined) < 2 or not is_whole:
        return []
    near = [[gpu for gpu in gpus if stated.labels[gpu, nic] in NEAR] for nic in nics]
    number = {gpu: sum(gpu in its for its in near) for gpu in gpus}
    short = [gpu for gpu in gpus if number[gpu] < multimode(number.values())[0]]
    shared = max(map(len, near))
    alike = shared < 2 or (len(short) == shared and all(len(its) in (0, shared) for its in near))
    return short if alike and _are_few(short, gpus) else []


def nics_of(stated: NvidiaSmiTopo) -> list[str]:
    """Names of the NICs of a matrix, in which a GPU has its number or a bus id."""
    return [name for name in stated.names if not name.startswith("GPU") and ":" not in name]


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


def _same_gpus(box: Box, adapters: Sequence[Device]) -> Profile | None:
    """The reference with the same GPUs; None where a guest or container sees only what it was given."""
    hidden = is_assigned(box) or not adapters
    return None if hidden or box.choice is None or not box.choice.profile.wiring else box.choice.profile


def _is_misplaced(box: Box, profile: Profile, adapters: Sequence[Device]) -> bool:
    gpus = box.reference_gpus
    wrong_hcas = misplaced(gpus, adapters, box.topology, profile.wiring, lambda wiring: wiring.to_hcas)
    wrong = wrong_gpus(box, profile)
    return wrong_hcas is None or bool(wrong_hcas.devices) or wrong is None or bool(wrong.devices)


def _least(profile: Profile, near: Sequence[PciClass]) -> int:
    return min(sum(wiring.to_hcas.get(pci, 0) for pci in near) for wiring in profile.wiring)
