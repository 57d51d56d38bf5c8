"""Numbers that PCI and NVML give out and that more than one layer knows, and the bounds of what is counted."""

from __future__ import annotations

NVIDIA = 0x10DE
"""PCI vendor."""
MELLANOX = 0x15B3
"""PCI vendor."""
DATA_DIRECT = 0x2100
"""PCI device of a ConnectX-8's DMA function, below the switch of a GPU (Direct NIC)."""
OF_THE_KERNEL = {"nouveau": "nouveau", "NovaCore": "nova_core", "nova_core": "nova_core"}
"""Drivers of the kernel for NVIDIA GPUs, and their modules: https://docs.kernel.org/gpu/nova/index.html"""
DISPLAY = 0x03
"""PCI base class of GPUs: 0x0300 with a display output (DGX Station), 0x0302 without."""
OTHER_BRIDGE = 0x0680
"""PCI base class and subclass of an NVSwitch, where the vendor is NVIDIA."""

_TURING = 0x1E00
"""The first PCI device of the first architecture with a GSP, which the open kernel modules need."""
_BRANCHES = (
    (0x1E00, 0x1FFF, 535), (0x2080, 0x20FF, 550), (0x2180, 0x21FF, 535), (0x2200, 0x22FF, 535), (0x2330, 0x2331, 525),
    (0x2300, 0x23FF, 570), (0x2400, 0x25FF, 570), (0x2600, 0x28FF, 570), (0x2900, 0x29FF, 570), (0x2B00, 0x2DFF, 590),
)  # fmt: skip
"""First and last PCI device of an architecture, and a driver branch that supports every GPU of it, the later models
included (appendix A of the driver README)."""


def is_supported(device: int, branch: int) -> bool:
    """Does the driver of that branch, ``570`` of 570.86.15, surely support the GPU with this PCI device?

    False for all before Turing.
    """
    return next((branch >= first for low, high, first in _BRANCHES if low <= device <= high), False)


def has_gsp(device: int) -> bool:
    """Do the open kernel modules support the GPU with this PCI device?"""
    return device >= _TURING


MIB = 1 << 20
MOST_GPUS = 256  # far above what a driver takes (NV_MAX_DEVICES); a garbled count must not become that many questions
NVLINK_MAX_LINKS = 36  # NVML_NVLINK_MAX_LINKS of R610; older drivers answer InvalidArgument beyond their own

MEMORY_TEMPERATURE = 82
"""``NVML_FI_DEV_MEMORY_TEMP``"""
TLIMITS = (193, 194, 195, 196)
"""``NVML_FI_DEV_TEMPERATURE_{SHUTDOWN,SLOWDOWN,MEM_MAX,GPU_MAX}_TLIMIT``"""
RECOVERY_ACTION = 230
"""``NVML_FI_DEV_GET_GPU_RECOVERY_ACTION``"""
NVLINK_SPEED = 164
"""``NVML_FI_DEV_NVLINK_GET_SPEED`` of one link, in MB/s"""
NVLINK_SPEEDS = (*range(84, 90), *range(132, 138))
"""``NVML_FI_DEV_NVLINK_SPEED_MBPS_L0`` to ``L11``"""
NVLINK5_ERRORS = {
    "malformed": 206, "overrun": 207, "receive": 208, "receive_remote": 209, "receive_general": 210, "integrity": 211,
    "discards": 212, "recovered": 213, "recovery_failed": 214, "effective": 219, "symbols": 221,
}  # fmt: skip
"""``NVML_FI_DEV_NVLINK_COUNT_*`` of a link, from NVLink 5 on, in place of ``nvmlDeviceGetNvLinkErrorCounter``."""
NVLINK5_BER = {"effective_ber": 220, "symbol_ber": 222}
"""As these, packed: mantissa in bits 8 to 11, negative exponent of ten in bits 0 to 7; 15e-255 is none at all."""
NVLINK_5 = 7
"""``NVML_NVLINK_VERSION_5_0``"""
COMPUTE_MODES = ("default", "exclusive thread", "prohibited", "exclusive process")
"""``nvmlComputeMode_t``"""
ADDRESSING_MODES = ("none", "HMM", "ATS")
"""``NVML_DEVICE_ADDRESSING_MODE_*``"""
PASSED_THROUGH = 1
"""``NVML_GPU_VIRTUALIZATION_MODE_PASSTHROUGH``: a whole GPU, which answers its guest as it answers a host; in other
modes a guest has a share of one."""
THROTTLE_TIMES = {"sw_thermal_ns": 269, "hw_thermal_ns": 270, "brake_ns": 271}
"""``NVML_FI_DEV_CLOCKS_EVENT_REASON_*``"""


class NvmlReturn:
    """Values of ``nvmlReturn_t`` (nvml.h) that something is decided by; ``Missing.code`` has them."""

    INVALID_ARGUMENT = 2
    DRIVER_NOT_LOADED = 9
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    CORRUPTED_INFOROM = 14
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    LIB_RM_VERSION_MISMATCH = 18
    UNKNOWN = 999


NVME = 0x010802
"""PCI class code of an NVMe controller, with its programming interface (pciutils: pci.ids)."""

BRANDS = {
    "Quadro": 1, "Tesla": 2, "NVS": 3, "GRID": 4, "GeForce": 5, "Titan": 6, "NVIDIA Virtual Applications": 7,
    "NVIDIA Virtual PC": 8, "NVIDIA Virtual Compute Server": 9, "NVIDIA vGPU for Compute": 9,
    "NVIDIA RTX Virtual Workstation": 10, "NVIDIA Cloud Gaming": 11, "Quadro RTX": 12, "NVIDIA RTX": 13,
    "NVIDIA": 14, "GeForce RTX": 15, "Titan RTX": 16,
}  # fmt: skip
"""``nvmlBrandType_t`` by the words of ``nvidia-smi -q``."""
