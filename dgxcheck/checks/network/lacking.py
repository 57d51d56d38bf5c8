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
from dgxcheck.profiles.model import Profile
from dgxcheck.topology.model import Device, PciClass
from dgxcheck.topology.paths import NEAR

_OF_A_NODE: tuple[PciClass, ...] = (*NEAR, "PHB", "NODE")


def gpus_short_of_hcas(box: Box, adapters: Sequence[Device]) -> list[Device]:
    """GPUs with fewer HCAs behind their switch than any GPU of the reference; none where a device is misplaced, nor
    where an HCA is far from its GPU because its DMA function is missing (gpu.dma).

    Of another machine with the same GPUs only where most GPUs have HCAs of their own, which no other GPU shares, and
    where several lack one three quarters: machines are built with fewer adapters than GPUs, too.
    """
    profile, gpus = reference(box), box.reference_gpus
    alike = not isinstance(profile, Judgement)
    chosen = _same_gpus(box, adapters) if isinstance(profile, Judgement) else profile
    if chosen is None or any(isinstance(device.path, Missing) for device in (*gpus, *adapters)):
        return []
    if without_dma(adapters) or (alike and _is_misplaced(box, chosen, adapters)):
        return []
    near = {nic: [gpu for gpu in gpus if box.topology.link(gpu, nic).pci in NEAR] for nic in adapters}
    short = [gpu for gpu in gpus if sum(gpu in its for its in near.values()) < _least(chosen, NEAR)]
    own = all(len(its) < 2 for its in near.values())
    few = 2 * len(short) < len(gpus) if len(short) == 1 else 4 * len(short) <= len(gpus)
    return short if alike or (own and few) else []


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
    hidden = guest(box) is not None or in_container(box) or not adapters
    return None if hidden or box.choice is None or not box.choice.profile.wiring else box.choice.profile


def _is_misplaced(box: Box, profile: Profile, adapters: Sequence[Device]) -> bool:
    gpus = box.reference_gpus
    wrong_hcas = misplaced(gpus, adapters, box.topology, profile.wiring, lambda wiring: wiring.to_hcas)
    wrong = wrong_gpus(box, profile)
    return wrong_hcas is None or bool(wrong_hcas.devices) or wrong is None or bool(wrong.devices)


def _least(profile: Profile, near: Sequence[PciClass]) -> int:
    return min(sum(wiring.to_hcas.get(pci, 0) for pci in near) for wiring in profile.wiring)
