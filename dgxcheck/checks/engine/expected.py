"""What a value is compared with: the reference machine's, or that of GPUs of the same model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import combinations

from dgxcheck.checks.engine.box import Box, mig_enabled
from dgxcheck.checks.engine.finding import FAULTY, Judgement, skip
from dgxcheck.facts.ids import VGA
from dgxcheck.facts.missing import Missing
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.profiles.library import name_of
from dgxcheck.profiles.model import Number
from dgxcheck.topology.model import Device
from dgxcheck.topology.reference import ALL


def expected(box: Box, key: str) -> Number | Judgement:
    """A number of the profile; the skip if there is none."""
    if box.choice is None:
        return skip("no-reference", "no matching reference machine")
    number = box.choice.number(key)
    return skip("no-reference", f"the profile {box.choice.profile.name} has no {key}") if number is None else number


def between_all(box: Box, gpus: Sequence[str], most: int = 4) -> int:
    """NVLinks of any two of GPUs whose board joins all alike, by NVSwitches; 0 of others, and of no more than ``most``
    GPUs, those of boards on which NVLinks alone join each two."""
    in_mig = any(mig_enabled(box, gpu.bdf) for gpu in box.gpus)
    graph = "" if box.choice is None or len(gpus) <= most or in_mig else box.choice.profile.nvlink_graph
    graphs = ((each.pairs, combinations(range(each.gpus), 2)) for each in ALL if each.name == graph)
    numbers = {links.get(pair, 0) for links, every in graphs for pair in every}
    return numbers.pop() if len(numbers) == 1 else 0


_SIZE = LazyPattern(r"[ -]\d+ ?GB\b", "GB")


def model_family(box: Box, gpu: Device) -> str:
    """Model name without the memory size, so that a 32 GB board is compared with 16 GB ones; empty if not known."""
    return _SIZE.sub("", name_of(gpu, box.snapshot))


NO_DATA_CENTER = LazyPattern(r"GeForce|TITAN|GTX|Quadro|Laptop|\bMX\d|\bT\d{3,4}\b|\bGB10\b|\bRTX\b(?!.*Server)")
"""Model names of GPUs for desktops, workstations and laptops."""
_SXM = LazyPattern(r"SXM|HGX|HBM3|\bPG50[69]\b|\bGB10\b|\bH(?:20|100|200|800)\b|\bG?B[123]00\b|\bGH200\b")
_CARD = LazyPattern(r"PCIe|NVL\b|\bCNX\b", flags=re.IGNORECASE)
"""nvidia-smi's product names: ``NVIDIA H100 80GB HBM3`` and ``NVIDIA B200`` are modules, ``NVIDIA H100 NVL`` a card."""
_GRACE = LazyPattern(r"\bG[BH][23]00\b", "GB200", "GB300", "GH200", "GH300")
_SPARK = LazyPattern(r"\bGB10\b", "GB10")


def is_module(model: str) -> bool:
    """Is it soldered to, or a module on, a board, by its name; no card?"""
    return bool(_SXM.search(model)) and not _CARD.search(model)


def is_of_baseboard(model: str) -> bool:
    """Is it a module on a board that feeds all GPUs of its machine? A Grace shares a board with its own CPU."""
    return is_module(model) and not (_GRACE.search(model) or _SPARK.search(model))


_B = LazyPattern(r"\bB[23]00\b", "B200", "B300")
_OLD_OR_CARD = LazyPattern(r"\b[PV]100\b|HBM2e")


def gpus_of_a_board(model: str) -> int:
    """The fewest GPUs that boards of this model have, from A100 on: HGX A100 to H200 are made with four and with eight,
    HGX B200 and B300 with eight; 1 of older modules, of which six stand in a machine (AC922), and of cards."""
    modern = is_of_baseboard(model) and not _OLD_OR_CARD.search(model)
    return 8 if modern and _B.search(model) else 4 if modern else 1


def is_spark(box: Box) -> bool:
    """Is it a DGX Spark, or another maker's machine with GB10?"""
    return any(is_on_package(box, gpu) for gpu in box.topology.gpus)


def is_on_package(box: Box, gpu: Device) -> bool:
    """Is it on the package of its CPU? The link that it claims, generation 1 with one lane, is none."""
    return bool(_SPARK.search(model_family(box, gpu)))


def is_coherent(box: Box) -> bool:
    """Is it a Grace machine? There translation is no obstacle, because HCAs reach GPU memory over C2C:
    nv_grdma_pci_topology_supported() of https://github.com/NVIDIA/open-gpu-kernel-modules (nv-pci.c).
    """
    return any(is_joined_to_grace(box, gpu) for gpu in box.topology.gpus)


def is_joined_to_grace(box: Box, gpu: Device) -> bool:
    """Does it share a board, and memory over C2C, with a Grace CPU? A card beside such GPUs, as of a DGX Station GB300,
    does not.
    """
    return bool(_GRACE.search(model_family(box, gpu)))


def siblings(box: Box, gpu: Device) -> tuple[Device, ...]:
    """The other GPUs of the same model family, asked about or not."""
    own = model_family(box, gpu)
    others = (other for other in box.topology.gpus if other.bdf != gpu.bdf)
    return tuple(other for other in others if own and model_family(box, other) == own)


def has_problem(judgement: Judgement | Missing) -> bool:
    """Does another check warn or fail about this GPU?"""
    return isinstance(judgement, Judgement) and judgement.status in FAULTY


def is_for_display(box: Box, bdf: str | None) -> bool:
    """Is it a VGA controller of a model of its own, beside GPUs that nvidia holds? Their driver may not take it."""
    functions = box.topology.functions
    own = functions.get(bdf or "")
    if own is None or own.class_code != VGA << 8:
        return False
    alike = sum(model_of(box, other) == model_of(box, own.bdf) for other in functions)
    return alike == 1 and any(other.driver == "nvidia" for other in functions.values())


def is_older(box: Box, bdf: str | None) -> bool:
    """Is its device id below those of all GPUs that nvidia holds? NVIDIA gives them out by generation (pci.ids)."""
    functions = box.topology.functions
    own = functions.get(bdf or "")
    held = [other.device for other in functions.values() if other.driver == "nvidia" and isinstance(other.device, int)]
    return own is not None and isinstance(own.device, int) and bool(held) and own.device < min(held)


def model_of(box: Box, bdf: str) -> object:
    """Vendor and device id of a PCI function; None where it is not known."""
    function = box.topology.functions.get(bdf)
    return None if function is None else (function.vendor, function.device)
