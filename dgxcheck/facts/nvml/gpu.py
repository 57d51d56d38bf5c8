"""GPUs as NVML describes them: identity, board, clocks, memory, ECC, power, temperature, modes, processes, fabric."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts import nature
from dgxcheck.facts.ids import ADDRESSING_MODES, COMPUTE_MODES
from dgxcheck.facts.missing import Missing, rows, text_of
from dgxcheck.facts.record import Record


class Gpu(Record, where="nvml identity"):
    """One GPU of ``nvmlDeviceGetHandleByIndex``; a GPU that only PCI shows has no ``Gpu``."""

    bdf: str = nature.key()
    index: int | Missing = nature.place("NVML index", unique=True, zero=True)
    """Missing where an imported text shows a part of NVML's list and does not say which."""
    name: str | Missing = nature.inventory("model name")
    uuid: str | Missing = nature.identity("UUID", flashed=True)
    serial: str | Missing = nature.identity(
        "serial number", shared="the two GPUs of a K80 board or Grace superchip", flashed=True
    )
    minor: int | Missing = nature.identity("minor number", zero=True)
    """N of ``/dev/nvidiaN``."""
    vbios: str | Missing = nature.version("VBIOS", among="board")
    gpu_numa_id: int | Missing = nature.place("NUMA node of its memory", unique=True)
    """NUMA node that the GPU's own memory forms (``nvmlDeviceGetNumaNodeId``), on Grace and POWER9 only."""


class Nvml(Record, where="system"):
    """What NVML says of itself and which GPUs it lists."""

    driver_version: str | Missing = nature.version("driver version")
    nvml_version: str | Missing = nature.version("NVML version")
    cuda_version: int | Missing = nature.version("CUDA version", "cuda")
    """1000 x major + 10 x minor."""
    count: int | Missing = nature.inventory("number of GPUs")
    gpus: tuple[Gpu, ...] = nature.holder()
    lost: tuple[Missing, ...] = nature.holder()
    """Indexes for which NVML gave no handle, with its reason."""


class GpuAffinity(Record, where="nvml affinity"):
    """Ideal CPUs and NUMA nodes of one GPU."""

    bdf: str = nature.key()
    cpulist: str | Missing = nature.place("ideal CPUs")
    """In the kernel's form: ``0-19,40-59``."""
    memory_nodes: tuple[int, ...] | Missing = nature.place("ideal NUMA nodes")
    """From R450 on."""


class GpuBoard(Record, where="nvml board"):
    """What never changes of one GPU."""

    bdf: str = nature.key()
    pci_device_id: int | Missing = nature.inventory("PCI device id", "hex")
    """Device in the upper half, vendor in the lower: 0x1db110de (``nvmlPciInfo_t``)."""
    pci_subsystem_id: int | Missing = nature.inventory("PCI subsystem id", "hex")
    brand: int | Missing = nature.inventory()
    """``nvmlBrandType_t``: 2 Tesla, 5 GeForce, 14 NVIDIA, 0 unknown."""
    architecture: int | Missing = nature.capability(asked="DeviceGetArchitecture")
    """``nvmlDeviceArchitecture_t``: 2 Kepler, 4 Pascal, 5 Volta, 7 Ampere, 9 Hopper."""
    compute_capability: tuple[int, int] | Missing = nature.capability(asked="DeviceGetCudaComputeCapability")
    """Major, minor."""
    board_id: int | Missing = nature.identity("board id", shared="the two GPUs of a K80 board")
    """Equal for both GPUs of a K80 on bare metal."""
    multi_gpu: bool | Missing = nature.capability("board with several GPUs")
    """Is this one of several GPUs of a board?"""
    part_number: str | Missing = nature.inventory(
        "part number", differs="part numbers of one model differ after a replacement"
    )
    inforom_image: str | Missing = nature.version("InfoROM image")
    inforom_oem: str | Missing = nature.version("InfoROM OEM version")
    inforom_ecc: str | Missing = nature.version("InfoROM ECC version")
    inforom_power: str | Missing = nature.version("InfoROM power version")
    inforom_valid: bool | Missing = nature.state("InfoROM valid", by="gpu.inforom", good=(True,))
    """Do the checksums of its objects hold (``nvmlDeviceValidateInforom``)? Else the answer is an error."""
    gsp_firmware: str | Missing = nature.version("GSP firmware")
    module_id: int | Missing = nature.place("module id", any="virtual machines repeat numbers")
    """Of the baseboard, as the service manual counts; from R535 on."""
    chassis_slot: int | Missing = nature.place("slot in the rack")
    """As the next of boards of a rack (``nvmlDeviceGetPlatformInfo``)."""
    tray: int | Missing = nature.place("compute tray of the rack")
    c2c: bool | Missing = nature.state("C2C to the CPU", by="gpu.c2c")
    """Is NVLink-C2C in use? GH200, GB200 and the like."""
    addressing_mode: int | Missing = nature.setting(words=ADDRESSING_MODES)
    """``NVML_DEVICE_ADDRESSING_MODE_*``: 0 none, 1 HMM, 2 ATS."""
    virtualization: int | Missing = nature.place("virtualization mode")
    """``nvmlGpuVirtualizationMode_t``: 0 none, 1 passed through, 2 vGPU guest, 3 and 4 vGPU host."""


REGISTERED = 3
"""``NVML_GPU_FABRIC_STATE_COMPLETED``"""


class Fabric(Record):
    """A GPU's registration with the fabric manager of an NVSwitch machine (``nvmlGpuFabricInfo_t``)."""

    state: int | Missing = nature.state("fabric state", by="driver.fabric-health", good=(0, 3))
    """0 not supported, 1 not started, 2 in progress, 3 completed."""
    status: int | Missing = nature.state("fabric status", by="driver.fabric-health", good=(0,))
    """The ``nvmlReturn_t`` with which it completed."""
    clique_id: int | Missing = nature.place("fabric clique", any="a site partitions its fabric")
    cluster_uuid: str | Missing = nature.place("fabric cluster", any="a site partitions its fabric")
    health_mask: int | Missing = nature.state(
        "fabric health mask", "hex", differs="driver.fabric-health judges its flags"
    )
    """``NVML_GPU_FABRIC_HEALTH_MASK_*``; from R550 on (``nvmlGpuFabricInfo_v2_t``)."""
    health_summary: int | Missing = nature.state(
        "fabric health", differs="driver.fabric-health judges it", by="driver.fabric-health", good=(0, 1)
    )
    """0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity; from R570 on (``nvmlGpuFabricInfo_v3_t``)."""

    @property
    def domain(self) -> str:
        """The cluster, if the GPU is registered and the fabric may reach beyond the machine: the UUID of one that ends
        there (DGX A100, HGX H100) is all zeros."""
        registered = self.state == REGISTERED and isinstance(self.cluster_uuid, str) and isinstance(self.clique_id, int)
        return str(self.cluster_uuid) if registered and str(self.cluster_uuid).strip("0-") else ""


class GpuModes(Record, where="nvml modes"):
    """Modes of one GPU."""

    bdf: str = nature.key()
    persistence: bool | Missing = nature.setting("persistence", fix="-pm {:d}")
    compute_mode: int | Missing = nature.setting(fix="-c {:d}", words=COMPUTE_MODES)
    """``nvmlComputeMode_t``: 0 default, 1 exclusive thread, 2 prohibited, 3 exclusive process."""
    operation_mode: int | Missing = nature.setting(fix="--gom={:d}")
    """``nvmlGpuOperationMode_t``: 0 all on, 1 compute, 2 low double precision."""
    operation_mode_pending: int | Missing = nature.setting(fix="--gom={:d}")
    mig: bool | Missing = nature.setting("MIG mode", differs="chosen for each GPU by who shares it out")
    mig_pending: bool | Missing = nature.setting("pending MIG mode", differs="chosen for each GPU by who shares it out")
    gpu_instances: int | Missing = nature.setting(
        "GPU instances", differs="chosen for each GPU by who shares it out",
        file="/proc/driver/nvidia/capabilities/gpu{minor}/mig",
    )
    """Of MIG; unsupported where its mode is off."""
    display_mode: bool | Missing = nature.load("display")
    """Is a display connected?"""
    display_active: bool | Missing = nature.load("display in use")
    recovery_action: int | Missing = nature.state(
        differs="asked for by the driver after an error: gpu.reset-required", by="gpu.reset-required", good=(0,),
        words=("none", "reset", "reboot", "drain P2P", "drain and reset", "recover IMEX domain", "bus reset",
               "system reboot"),
    )  # fmt: skip
    """``NVML_FI_DEV_GET_GPU_RECOVERY_ACTION``"""
    fabric: Fabric | Missing = nature.holder(asked="DeviceGetGpuFabricInfo")


class GpuProcess(Record):
    """One process with a context on a GPU."""

    pid: int = nature.load("process id")
    used_memory: int | Missing = nature.load("memory of a process", "bytes")
    """Bytes; unsupported where the driver does not account for them (MIG, some virtual machines)."""
    name: str | Missing = nature.load("process name")


class GpuActivity(Record, where="nvml activity"):
    """How busy one GPU is."""

    bdf: str = nature.key()
    gpu_percent: int | Missing = nature.load("utilisation", "%", low=0, high=100)
    """Unsupported while MIG is on, as the next."""
    memory_percent: int | Missing = nature.load("memory utilisation", "%", low=0, high=100)
    compute: tuple[GpuProcess, ...] | Missing = nature.load("compute processes")
    graphics: tuple[GpuProcess, ...] | Missing = nature.load("graphics processes")


_VGPU_GUEST = 2


def vgpus(nvml: Nvml | Missing, boards: tuple[GpuBoard, ...] | Missing) -> frozenset[str]:
    """The GPUs that are a share of a board, as a guest sees them: by their mode, by name where that is not known."""
    modes = {row.bdf: row.virtualization for row in rows(boards) if not isinstance(row.virtualization, Missing)}
    return frozenset(
        gpu.bdf
        for gpu in (() if isinstance(nvml, Missing) else nvml.gpus)
        if (modes[gpu.bdf] == _VGPU_GUEST if gpu.bdf in modes else _is_vgpu_name(gpu.name))
    )


def _is_vgpu_name(name: str | Missing) -> bool:
    """Names of vGPUs end in frame buffer and series: ``A40-48Q``, ``A100D-3-20C``."""
    size = text_of(name).rpartition("-")[2]
    return size[:-1].isdigit() and size[-1:] in tuple("QABC")


FABRIC_FLAGS: Mapping[str, int] = {
    "degraded_bandwidth": 0, "route_recovery": 2, "route_unhealthy": 4, "access_timeout_recovery": 6,
}  # fmt: skip
"""Fields of two bits of ``healthMask`` (``NVML_GPU_FABRIC_HEALTH_MASK_*``) by their shift: 0 not supported, 1 true, 2
false."""
FABRIC_STATUSES: Mapping[int, str] = {
    3: "not supported", 10: "timeout", 19: "in use", 23: "insufficient resources", 26: "invalid state",
    999: "unknown error",
}  # fmt: skip
"""What the status of a registration can be, ``nvmlReturn_t``, in the words of nvmlErrorString."""
FABRIC_CONFIGURATION, _MANAGER = 8, 14
"""Shifts of the configuration (four bits) and of the fabric manager's state (two bits)."""
_TRUE = 1
FABRIC_CONFIGURED = (0, 1)
"""Values of the configuration that are no fault: not supported, and none of these."""
FABRIC_CONFIGURATIONS: Mapping[int, str] = {
    2: "wrong system GUID", 3: "wrong chassis serial number", 4: "no partition", 5: "too few NVLinks",
    6: "incompatible GPU firmware", 7: "invalid location", 8: "invalid GPU state",
}  # fmt: skip
_DISCONNECTED = 2
FABRIC_UNHEALTHY, FABRIC_LIMITED = 2, 3
"""Of ``healthSummary``; 0 is not supported, 1 healthy."""


def fabric_flag(mask: int, name: str) -> bool:
    """Is this flag of the fabric's health known to be true?"""
    return mask >> FABRIC_FLAGS[name] & 3 == _TRUE


def fabric_configuration(mask: int) -> int:
    """Why the configuration is incorrect, one of ``FABRIC_CONFIGURATIONS``, or one of ``FABRIC_CONFIGURED``."""
    return mask >> FABRIC_CONFIGURATION & 0xF


def fabric_disconnected(mask: int) -> bool:
    """Does the GPU say that its fabric manager is disconnected?"""
    return mask >> _MANAGER & 3 == _DISCONNECTED
