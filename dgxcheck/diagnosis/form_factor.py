"""What carries a GPU, by its model: it decides what can be taken out, and by whom."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.expected import NO_DATA_CENTER, is_module, is_of_baseboard, model_family
from dgxcheck.components.component import Component
from dgxcheck.components.containment import is_k80
from dgxcheck.components.locate import has_nvswitches
from dgxcheck.diagnosis.reset_domain import gpus_of
from dgxcheck.facts.ids import MELLANOX, VGA
from dgxcheck.facts.missing import rows, text_of
from dgxcheck.facts.nvml.gpu import Fabric
from dgxcheck.facts.record import remembered
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.profiles.library import boards_for

FormFactor = Literal["sxm", "water-cooled", "dual-gpu-card", "card", "carrier"]
"""``sxm``: a module on a GPU tray; ``water-cooled``: a card of a DGX Station; ``carrier``: a board or riser without a
GPU."""
VENDOR_ONLY = ("sxm", "water-cooled")
"""Heat sinks, thermal paste, water loops and SXM modules are the vendor's work (DGX service manuals)."""
_RACK = LazyPattern(r"\bG[BH][123]00\b")
"""Boards with a Grace CPU: their NVSwitches are in trays of their own, run by the rack's fabric manager (NMX-C)."""
_TRAY = LazyPattern(r"\bGB[23]00\b")
_WITH_ADAPTERS = LazyPattern(r"\bG?B300\b|\bGB200\b")
_WITH_MODULES = LazyPattern(r"\bH[12]00\b|\bB200\b")


def form_factor(box: Box, component: Component) -> FormFactor:
    """Of the component's GPUs; of what has no GPU, a missing one included, that of the other GPUs of the box."""
    gpus = gpus_of(box, component)
    if component.shared_by and not gpus:
        return "carrier"
    if is_station(box):
        return "water-cooled"
    model = gpu_model(box, component)
    if has_nvswitches(box) or is_module(model):
        return "sxm"
    if not gpus:
        return "carrier"
    return "dual-gpu-card" if is_k80(gpus[0]) else "card"


def is_power_of_a_card(box: Box, component: Component) -> bool:
    """Of one card, which has power cables of its own, while the others do not lack power."""
    own = component.kind in ("gpu", "board") and component.part == "power supply"
    return own and form_factor(box, component) in ("card", "dual-gpu-card")


def is_power_of_a_module(box: Box, component: Component) -> bool:
    """Of one module of a baseboard that feeds all of them alike, while the others do not lack power."""
    own = component.kind == "gpu" and component.part == "power supply" and len(box.topology.gpus) > 1
    return own and form_factor(box, component) == "sxm" and not is_tray_of_a_rack(box)


def is_on_baseboard(box: Box, component: Component) -> bool:
    """Are its GPUs modules on a board that feeds all of the machine?"""
    return form_factor(box, component) == "sxm" and is_of_baseboard(gpu_model(box, component))


def is_on_compute_boards(box: Box) -> bool:
    """Does each board carry a Grace beside its GPUs?"""
    return any(map(_RACK.search, _named(box).values()))


def is_station(box: Box) -> bool:
    """A DGX Station: its GPUs and CPU are water-cooled, its GPUs named ``Tesla V100-DGXS-16GB``."""
    models = (model_family(box, gpu) for gpu in box.topology.gpus)
    return "DGX Station" in _product(box) or any("DGXS" in model for model in models)


def may_have_bmc(box: Box) -> bool:
    """Can ``ipmitool`` ask a BMC here? A virtual machine has none; a workstation (a DGX Station with V100, GPUs that
    are not for data centers) only where the display adapter of one is on PCI.
    """
    if guest(box) is not None:
        return False
    vendors = {each.vendor for each in box.topology.functions.values() if each.subclass == VGA}
    desk = [_DESK.search(name) or NO_DATA_CENTER.search(name) for gpu in box.topology.gpus
            if (name := model_family(box, gpu))]  # fmt: skip
    return not vendors.isdisjoint(_OF_A_BMC) or not desk or not all(desk)


_DESK = LazyPattern(r"DGXS")
_OF_A_BMC = (0x1A03, 0x102B)
"""ASPEED, and Matrox in the BMCs of Dell, HPE and others (https://pci-ids.ucw.cz)."""


def is_dgx(box: Box) -> bool:
    return "DGX" in _product(box).upper()


def _product(box: Box) -> str:
    return text_of(box.snapshot.known_host.dmi.product_name)


def has_no_diagnostic(box: Box, component: Component) -> bool:
    """Is it a GPU on which DCGM runs no more than level 1, as on all that are not for data centers?
    One that is lost counts as the others.

    https://docs.nvidia.com/datacenter/dcgm/latest/reference/command-line-reference/dcgmi/dcgmi-diag.html
    """
    both = (gpus_of(box, component), box.topology.gpus)
    own, every = ([model_family(box, gpu) for gpu in gpus] for gpus in both)
    return any(map(NO_DATA_CENTER.search, own if any(own) else every))


def is_boot_mirror(box: Box, name: str) -> bool:
    """A mirror of NVMe drives in a DGX: M.2 modules on the board, which are changed with the power off.

    DGX-2 and DGX A100 user guides: two M.2 drives in RAID 1 for the operating system; the data drives are RAID 0 or 5.
    """
    mirrors = (row for row in box.snapshot.arrays if row.name == name and row.level == "raid1")
    drives = [drive for row in mirrors for drive in rows(row.members)]
    return is_dgx(box) and bool(drives) and all(drive.startswith("nvme") for drive in drives)


def is_on_network_board(box: Box, component: Component) -> bool:
    """Is it an adapter, or its link, on a network module, a GPU board or a tray, and no card?

    Four ConnectX-7 are on each network module of a DGX from H100 on; a ConnectX-8 is on the board of its GPU (B300), or
    on the tray. No service manual that is public has the owner take one out.
    """
    models = _named(box).values()
    if not any(map(_WITH_ADAPTERS.search, models)) and not (is_dgx(box) and any(map(_WITH_MODULES.search, models))):
        return False
    function = box.topology.functions.get(component.bdf or "") if component.kind == "link" else None
    its_link = function is not None and function.vendor == MELLANOX and not gpus_of(box, component)
    return component.kind == "hca" or component.part == "missing HCA" or its_link


def has_fabric_elsewhere(box: Box) -> bool:
    """Is the NVLink fabric managed by another machine of the rack (GB200 NVL72), not by this one? A GH200 without
    NVLinks has none.
    """
    unlinked = {gpu.name for gpu in box.topology.gpus if gpu.nvlink_positions == 0}
    linked = (model for name, model in _named(box).items() if name not in unlinked)
    return any(map(_RACK.search, linked)) and not _stands_alone(box)


def is_tray_of_a_rack(box: Box) -> bool:
    """A compute tray of an NVL72: the power shelves of its rack feed all trays."""
    return any(map(_TRAY.search, _named(box).values())) and not _stands_alone(box)


def _stands_alone(box: Box) -> bool:
    """A DGX Station GB300, or boards whose GPUs NVLinks join without a fabric (GB200 NVL4, GH200 NVL2)."""
    fabrics = [row.fabric for row in rows(box.snapshot.gpu_modes) if isinstance(row.fabric, Fabric)]
    return is_station(box) or (bool(fabrics) and all(fabric.state == 0 for fabric in fabrics))


def gpu_model(box: Box, component: Component) -> str:
    """Of the first GPU; where that is lost and reports none, that of all the others, if it is one, else by PCI id; of a
    box without a GPU that of its reference machine."""
    gpus = gpus_of(box, component)
    models = {name for gpu in box.topology.gpus if (name := model_family(box, gpu))}
    own = model_family(box, gpus[0]) if gpus else ""
    if not box.topology.gpus and box.choice is not None:
        boards = boards_for(box.choice)
        return next((boards[name].name for name in box.choice.profile.boards if name in boards), "")
    by_id = next(filter(None, (_named(box).get(gpu.name) for gpu in gpus)), "")
    return own or (models.pop() if len(models) == 1 else by_id)


@remembered()
def _named(box: Box) -> Mapping[str, str]:
    """The model of each GPU by its name; of one that is lost and reports none that of its PCI id."""
    boards = boards_for(box.choice)
    ids = {gpu: box.board_id(gpu) for gpu in box.topology.gpus}
    return {gpu.name: model_family(box, gpu) or (boards[id].name if id in boards else "") for gpu, id in ids.items()}
