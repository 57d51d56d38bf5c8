"""Who a GPU is, as NVML, the PCI bus, its name and its VBIOS have it."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.consistency.contradiction import Contradiction, Facts, number, reading
from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Evidence
from dgxcheck.facts.missing import BadInput, Missing, question, rows
from dgxcheck.facts.nvml.gpu import vgpus
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device
from dgxcheck.topology.nvlinks import is_nvswitch
from dgxcheck.xid.table import architecture_of

VBIOS = {
    2: ("80",), 3: ("82", "84"), 4: ("86",), 5: ("88",), 6: ("90",), 7: ("92", "94"), 8: ("95",), 9: ("96",),
    10: ("96", "97", "98"),
}  # fmt: skip
"""The first part of a board's VBIOS version by ``nvmlDeviceArchitecture_t``, as the dumps of ``boards.toml`` have it:
80.21.. of a K80, 86.00.. of a P100, 88.00.. of a V100, 92.00.. of an A100, 96.00.. of an H100, 97.00.. of a B200."""
CAPABILITY = {2: (3,), 3: (5,), 4: (6,), 5: (7,), 6: (7,), 7: (8,), 8: (8,), 9: (9,), 10: (10, 12)}
"""Major compute capability by architecture: https://developer.nvidia.com/cuda-gpus"""
_GPU_END, _SWITCH_END, _UNKNOWN_END = 0, 2, 255  # nvmlIntNvLinkDeviceType_t
_IDS = (
    ("gpu_board.pci_device_id", "pci.device", "pci.vendor", "device id"),
    ("gpu_board.pci_subsystem_id", "pci.subsystem_device", "pci.subsystem_vendor", "subsystem id"),
)


def is_compared(box: Box, gpu: Device) -> bool:
    """Were its ids or its architecture read?"""
    board = box.gpu(gpu).board
    ids = () if isinstance(board, Missing) else (board.pci_device_id, board.architecture)
    return any(isinstance(each, int) for each in ids)


def pci_ids(box: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """Device and subsystem id of NVML (device in the upper half, vendor in the lower) and of the bus."""
    for path, device_path, vendor_path, words in _IDS:
        own, device, vendor = (number(facts, each) for each in (path, device_path, vendor_path))
        if own is not None and device is not None and vendor is not None and own != int(device) << 16 | int(vendor):
            text = f"{words} {int(own):#010x} in NVML, {int(device) << 16 | int(vendor):#010x} on the PCI bus"
            yield Contradiction(text, tuple(reading(box, gpu, each) for each in (path, device_path)))


def model(box: Box, gpu: Device, facts: Facts) -> Iterator[Contradiction]:
    """The architecture by name against the board of the PCI id, the VBIOS and the compute capability."""
    name = facts.get("gpu.name")
    named = _architecture(name)
    if named is None or gpu.bdf in vgpus(box.snapshot.gpu, box.snapshot.gpu_board):
        return
    own = reading(box, gpu, "gpu.name")
    board = box.board(gpu)
    if board is not None and _architecture(board.name) not in (None, named):
        id_ = Evidence(pci_file(gpu.bdf, "device"), board.id)
        yield Contradiction(f"NVML names it {name}, its PCI id is that of {board.name}", (own, id_))
    architecture = number(facts, "gpu_board.architecture")
    if architecture is not None and architecture in VBIOS and architecture != named:
        text = f"NVML names it {name}, and its architecture is {architecture:g}, not {named}"
        yield Contradiction(text, (own, reading(box, gpu, "gpu_board.architecture")))
    vbios = facts.get("gpu.vbios")
    if isinstance(vbios, str) and vbios.partition(".")[0] not in VBIOS[named]:
        text = f"VBIOS {vbios} on a {name}, whose versions begin with {' or '.join(VBIOS[named])}"
        yield Contradiction(text, (own, reading(box, gpu, "gpu.vbios")))
    capability = facts.get("gpu_board.compute_capability")
    if isinstance(capability, tuple) and capability[0] not in CAPABILITY[named]:
        text = f"compute capability {capability[0]}.{capability[1]} of a {name}"
        yield Contradiction(text, (own, reading(box, gpu, "gpu_board.compute_capability")))


def far_ends(box: Box, gpu: Device, _: Facts) -> Iterator[Contradiction]:
    """What an NVLink says of its far end, against the device of that address."""
    gpus = {each.bdf for each in box.topology.gpus}
    for link in [link for link in rows(box.snapshot.nvlink) if link.bdf == gpu.bdf]:
        function = box.topology.functions.get(link.remote_bdf) if isinstance(link.remote_bdf, str) else None
        if function is not None and isinstance(link.remote_type, int) and link.remote_type != _UNKNOWN_END:
            wanted = _GPU_END if function.bdf in gpus else _SWITCH_END if is_nvswitch(function) else link.remote_type
            if link.remote_type != wanted:
                asked = question("nvmlDeviceGetNvLinkRemoteDeviceType", link.bdf, link.link)
                text = f"NVLink {link.link} leads to {function.bdf}, of type {wanted}, and calls it {link.remote_type}"
                yield Contradiction(text, (Evidence(asked, link.remote_type),))


def _architecture(name: object) -> int | None:
    try:
        return architecture_of(name)[1] if isinstance(name, str) else None
    except BadInput:
        return None
