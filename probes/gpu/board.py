"""A GPU's board: PCI ids, architecture, part number, InfoROM."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuBoard
from dgxcheck.facts.missing import Gap, Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import each
from probes.gpu.values import U32, flag, members, number, outputs, text


def probe(source: Source) -> tuple[GpuBoard, ...] | Missing:
    """``nvmlDeviceGetPciInfo``, ``GetArchitecture``, ``GetInforomVersion`` and the like of every GPU."""
    return each(source, _board)


def _board(source: Source, bdf: str) -> GpuBoard:
    device, subsystem = members(source, "nvmlDeviceGetPciInfo", bdf, names=("pciDeviceId", "pciSubSystemId"))
    oem, ecc, power = (text(source, "nvmlDeviceGetInforomVersion", bdf, part) for part in range(3))
    return GpuBoard(
        bdf=bdf,
        pci_device_id=device,
        pci_subsystem_id=subsystem,
        brand=number(source, "nvmlDeviceGetBrand", bdf),
        architecture=_architecture(source, bdf),
        compute_capability=_compute_capability(source, bdf),
        board_id=number(source, "nvmlDeviceGetBoardId", bdf),
        multi_gpu=flag(source, "nvmlDeviceGetMultiGpuBoard", bdf),
        part_number=text(source, "nvmlDeviceGetBoardPartNumber", bdf),
        inforom_image=text(source, "nvmlDeviceGetInforomImageVersion", bdf),
        inforom_oem=oem,
        inforom_ecc=ecc,
        inforom_power=power,
    )


def _architecture(source: Source, bdf: str) -> int | Missing:
    """NVML_DEVICE_ARCH_UNKNOWN is all ones."""
    architecture = number(source, "nvmlDeviceGetArchitecture", bdf)
    if architecture == U32:
        return Missing(Gap.UNSUPPORTED, question("nvmlDeviceGetArchitecture", bdf), "unknown to the driver")
    return architecture


def _compute_capability(source: Source, bdf: str) -> tuple[int, int] | Missing:
    major, minor = outputs(source, "nvmlDeviceGetCudaComputeCapability", bdf, count=2)
    if isinstance(major, Missing):
        return major
    return minor if isinstance(minor, Missing) else (major, minor)
