"""Numbers that PCI and NVML give out and that more than one layer knows, and the bounds of what is counted."""

from __future__ import annotations

from collections.abc import Mapping

NVIDIA = 0x10DE
"""PCI vendor."""
MELLANOX = 0x15B3
"""PCI vendor."""
DATA_DIRECT = 0x2100
"""PCI device of a ConnectX-8's DMA function, below the switch of a GPU (Direct NIC)."""
GPU_IDLE = 0x1
"""``nvmlClocksEventReasonGpuIdle``"""
OF_THE_KERNEL = {"nouveau": "nouveau", "NovaCore": "nova_core", "nova_core": "nova_core"}
"""Drivers of the kernel for NVIDIA GPUs, and their modules: https://docs.kernel.org/gpu/nova/index.html"""
DISPLAY = 0x03
"""PCI base class of GPUs."""
VGA = 0x0300
"""PCI base class and subclass of GPUs with display outputs."""
CONTROLLER_3D = 0x0302
"""PCI base class and subclass of GPUs without, as those for data centers."""
NETWORK = 0x02
"""PCI base class of network controllers."""
PCI_BRIDGE = 0x0604
"""PCI base class and subclass of root ports and ports of switches."""
OTHER_BRIDGE = 0x0680
"""PCI base class and subclass of an NVSwitch, where the vendor is NVIDIA."""

_TURING = 0x1E00
"""The first PCI device of the first architecture with a GSP, which the open kernel modules need."""
_BRANCHES: Mapping[int, int] = {
    0x1EB8: 535, 0x20B0: 535, 0x20B2: 535, 0x20B5: 535, 0x20B7: 535, 0x2235: 535, 0x2236: 535, 0x2237: 535, 0x25B6: 550,
    0x2322: 570, 0x2324: 570, 0x2329: 570, 0x2330: 535, 0x2331: 535, 0x2335: 570, 0x233B: 580, 0x2342: 570,
    0x26B5: 550, 0x26B9: 550, 0x27B8: 550, 0x2901: 575, 0x2941: 575, 0x3182: 590, 0x31C2: 590,
}  # fmt: skip
"""PCI devices of boards of servers (T4, A100, A30, A40, A10, A2, H800, H20, H100, H200, GH200, L40, L40S, L4, B200,
GB200, B300, GB300), and a driver branch of which every release lists them: not their first one, as the first releases
of a branch can be older than later ones of the branch before it (lists in README.md of
https://github.com/NVIDIA/open-gpu-kernel-modules by release)."""


def is_supported(device: int, branch: int) -> bool:
    """Does every driver of that branch, ``570`` of 570.86.15, support the GPU with this PCI device?"""
    return branch >= _BRANCHES.get(device, branch + 1)


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
GUEST_MODES = (PASSED_THROUGH, 2)
"""And ``NVML_GPU_VIRTUALIZATION_MODE_VGPU``."""
THROTTLE_TIMES = {"sw_thermal_ns": 269, "hw_thermal_ns": 270, "brake_ns": 271}
"""``NVML_FI_DEV_CLOCKS_EVENT_REASON_*``"""


class NvmlReturn:
    """Values of ``nvmlReturn_t`` (nvml.h) that something is decided by; ``Missing.code`` has them."""

    INVALID_ARGUMENT = 2
    INSUFFICIENT_POWER = 8
    DRIVER_NOT_LOADED = 9
    IRQ_ISSUE = 11
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
