"""A GPU's board: PCI ids, architecture, part number, InfoROM."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class GpuBoard(Record):
    """What never changes of one GPU."""

    bdf: str
    pci_device_id: int | Missing
    """Device in the upper half, vendor in the lower: 0x1db110de (``nvmlPciInfo_t``)."""
    pci_subsystem_id: int | Missing
    brand: int | Missing
    """``nvmlBrandType_t``: 2 Tesla, 14 NVIDIA, 0 unknown."""
    architecture: int | Missing
    """``nvmlDeviceArchitecture_t``: 2 Kepler, 4 Pascal, 5 Volta, 7 Ampere, 9 Hopper."""
    compute_capability: tuple[int, int] | Missing
    """Major, minor."""
    board_id: int | Missing
    """Equal for both GPUs of a K80 on bare metal."""
    multi_gpu: bool | Missing
    """Is this one of several GPUs of a board?"""
    part_number: str | Missing
    inforom_image: str | Missing
    inforom_oem: str | Missing
    inforom_ecc: str | Missing
    inforom_power: str | Missing
