"""What can be wrong, in one typed list of words: causes and actions follow from these, never from a message."""

from __future__ import annotations

from enum import Enum


class Fault(str, Enum):
    """A fault word, as in the JSON member ``fault``, with what it means; dgxcheck-health(1) lists them."""

    meaning: str

    def __new__(cls, word: str, meaning: str) -> Fault:
        member = str.__new__(cls, word)
        member._value_ = word
        member.meaning = meaning
        return member

    # the driver and its library
    LIBRARY_MISSING = "library-missing", "libnvidia-ml.so.1 is not installed or not found"
    LIBRARY_BROKEN = "library-broken", "libnvidia-ml.so.1 is there and cannot be loaded"
    DRIVER_NOT_LOADED = "driver-not-loaded", "NVIDIA GPUs are present and no NVIDIA kernel module is loaded"
    DRIVER_FAILED = "driver-failed", "NVML cannot be initialised for another reason"
    DRIVER_UNRESPONSIVE = "driver-unresponsive", "a driver call hung or ended the process that made it"
    DRIVER_MISMATCH = "driver-mismatch", "driver library and loaded kernel module are of different versions"
    CLIENT_MISMATCH = "client-mismatch", "the driver refused programs that use another version of its library"
    NOUVEAU = "nouveau", "the nouveau driver is bound to an NVIDIA GPU"
    PERSISTENCE_OFF = "persistence-off", "persistence mode is off"
    DEVICE_NODE = "device-node", "a /dev/nvidia* node is missing or cannot be opened"
    FABRIC_MANAGER_DOWN = "fabric-manager-down", "the NVSwitch fabric is not initialised: fabric manager not running"
    FABRIC_MANAGER_ERROR = "fabric-manager-error", "fabric manager logged an error that names no device"
    FABRIC_FAILED = "fabric-failed", "a GPU failed to register with the NVSwitch fabric"
    NOT_READY = "not-ready", "CUDA is not ready on this machine, so that nothing could be measured"
    # presence and identity of devices
    GPU_LOST = "gpu-lost", "a GPU stopped responding or fell off the bus"
    GPU_NOT_STARTED = "gpu-not-started", "the driver could not initialise a GPU"
    GPU_UNPOWERED = "gpu-unpowered", "the driver reports that a GPU's auxiliary power is not connected"
    GPU_STARTED_LATE = "gpu-started-late", "the driver initialised a GPU only after a failed attempt"
    GPU_MISSING = "gpu-missing", "fewer GPUs than the reference machine has"
    WRONG_MODEL = "wrong-model", "a GPU of another model than the reference machine's"
    DISAGREEMENT = "disagreement", "NVML and sysfs report different PCI paths"
    CONTRADICTION = "contradiction", "readings that cannot be true together"
    UNEQUAL = "unequal", "a version, size, limit or setting differs from the other devices of its kind"
    DRIFT = "drift", "differs from the baseline recording"
    VERSION = "version", "a driver, firmware or VBIOS version differs from the one that the site pins"
    MISPLACED = "misplaced", "a device is in another place than in the reference machine"
    # a GPU's own parts
    RESET_REQUIRED = "reset-required", "the GPU needs a reset"
    REBOOT_REQUIRED = "reboot-required", "the GPU needs a reboot of the system or node"
    RECOVERY_REQUIRED = "recovery-required", "the driver requires another recovery action for the GPU"
    DRAIN_REQUIRED = "drain-required", "the driver asks to drain peer-to-peer traffic of the GPU"
    COMPUTE_PROHIBITED = "compute-prohibited", "compute mode is PROHIBITED"
    MIG_PENDING = "mig-pending", "a MIG mode change waits for a GPU reset"
    INFOROM = "inforom", "the InfoROM is corrupted or unreadable"
    ECC_OFF = "ecc-off", "ECC is disabled"
    ECC_PENDING = "ecc-pending", "an ECC mode change waits for a GPU reset"
    ECC_UNCORRECTED = "ecc-uncorrected", "uncorrected memory errors"
    ECC_CORRECTED = "ecc-corrected", "corrected memory errors above the threshold rate"
    ECC_FLOOD = "ecc-flood", "very many corrected memory errors"
    SRAM_EXCEEDED = "sram-exceeded", "uncorrected SRAM errors at NVIDIA's threshold for an RMA"
    RETIREMENT_PENDING = "retirement-pending", "a page retirement waits for a GPU reset"
    PAGES_MANY = "pages-many", "pages retired for double-bit errors, or many in all, but not at the limit"
    PAGES_GROWING = "pages-growing", "many pages retired for double-bit errors, several of them within a week"
    PAGES_EXHAUSTED = "pages-exhausted", "retired pages at the limit at which the board is replaced"
    REMAP_PENDING = "remap-pending", "a row remapping waits for a GPU reset"
    REMAP_FAILED = "remap-failed", "a row remapping failed: no spare rows left"
    ROWS_EXHAUSTED = "rows-exhausted", "remapped rows at the limit at which the board is replaced"
    ROWS_LOW = "rows-low", "a memory bank has few or no spare rows left"
    MEMORY_SIZE = "memory-size", "less memory than the model has"
    OVERHEATING = "overheating", "temperature at or near the slowdown threshold"
    HOTTER = "hotter", "much hotter than the other GPUs at similar power"
    THERMAL_SLOWDOWN = "thermal-slowdown", "clocks are held down by temperature"
    POWER_BRAKE = "power-brake", "clocks are held down by the external power brake"
    HARDWARE_SLOWDOWN = "hardware-slowdown", "clocks are held down by hardware: temperature or power"
    POWER_CAPPED = "power-capped", "the power limit is below the default"
    POWER_REACHED = "power-reached", "a power limit that was not lowered holds clocks below those of other GPUs"
    POWER_VIOLATION = "power-violation", "clocks are held down by lack of power"
    CLOCKS_LOWERED = "clocks-lowered", "application clocks are below the default"
    CLOCKS_LIMITED = "clocks-limited", "the highest clock is below that of the model"
    # PCIe
    LINK_NARROW = "link-narrow", "a PCIe link is trained at fewer lanes than both ends have"
    LINK_SLOW = "link-slow", "a PCIe link is limited to a lower generation than both ends have"
    LINK_LIMITED = "link-limited", "a setting holds a PCIe link below the generation that both ends support"
    LINK_DEGRADED = "link-degraded", "a PCIe link trained below the generation that ends and settings allow"
    DEVICE_DISABLED = "device-disabled", "memory accesses or bus mastering of a PCI function are off"
    PCIE_REPLAYS = "pcie-replays", "PCIe replays above the threshold rate"
    AER_CORRECTABLE = "aer-correctable", "correctable PCIe errors above the threshold rate"
    AER_UNCORRECTABLE = "aer-uncorrectable", "non-fatal or fatal PCIe errors"
    SWITCH_MISSING = "switch-missing", "fewer PCIe switches above GPUs below one socket than below the other"
    BAR1_SMALL = "bar1-small", "BAR1 is smaller than the model's or unassigned"
    BAR1_MISMATCH = "bar1-mismatch", "NVML and the PCI bus report different sizes of BAR1"
    NUMA_UNKNOWN = "numa-unknown", "firmware does not report the NUMA node of a host bridge"
    # NVLink and peer access
    NVLINK_DOWN = "nvlink-down", "NVLinks are down"
    NVLINK_REPORTED = "nvlink-reported", "another tool reports NVLinks as down, which nothing else confirms"
    NVLINK_MISWIRED = "nvlink-miswired", "NVLinks lead to another GPU than in the reference machine"
    NVLINK_ONE_SIDED = "nvlink-one-sided", "an NVLink is up at one end only"
    NVLINK_SLOW = "nvlink-slow", "an NVLink runs at a lower generation or rate than it should"
    NVLINK_ERRORS = "nvlink-errors", "NVLink error counters grow"
    NVSWITCH = "nvswitch", "an NVSwitch reported an error (SXid) that takes NVLinks down"
    NVSWITCH_FATAL = "nvswitch-fatal", "an NVSwitch reported an error (SXid) that is fatal to the whole fabric"
    NVSWITCH_NOTICE = "nvswitch-notice", "an NVSwitch reported an error (SXid) that asks to check cooling or seating"
    NVSWITCH_WATCHED = (
        "nvswitch-watched",
        "an NVSwitch reported a non-fatal error (SXid) that asks for no action yet",
    )
    NVSWITCH_MISSING = "nvswitch-missing", "fewer NVSwitches than the reference machine has, or than NVLinks lead to"
    NVSWITCH_DRIVER = "nvswitch-driver", "no driver is bound to an NVSwitch"
    FABRIC_UNHEALTHY = "fabric-unhealthy", "the driver reports the routes of a GPU through the fabric as unhealthy"
    FABRIC_DEGRADED = "fabric-degraded", "the driver reports reduced bandwidth or a recovery of the fabric"
    FABRIC_MISCONFIGURED = "fabric-misconfigured", "the driver reports an incorrect configuration of the fabric"
    P2P_BLOCKED = "p2p-blocked", "peer access is refused by the driver or a setting"
    # InfiniBand and Ethernet
    HCA_MISSING = "hca-missing", "fewer HCAs than the reference machine has"
    HCA_NOT_STARTED = "hca-not-started", "the driver of an HCA gave up on it"
    HCA_UNRESPONSIVE = "hca-unresponsive", "the firmware of an HCA stopped responding"
    HCA_FLASH_RECOVERY = "hca-flash-recovery", "an HCA is in flash recovery: it runs no firmware"
    HCA_OVERHEATING = "hca-overheating", "the temperature sensors of an HCA reached their limit"
    HCA_POWER = "hca-power", "a slot reports less power than its HCA needs"
    HCA_FIRMWARE = "hca-firmware", "HCA firmware differs from the others of its kind"
    PORT_MISSING = "port-missing", "a port that the configuration names is missing"
    PORT_DOWN = "port-down", "a port is down"
    PORT_DISABLED = "port-disabled", "a port is administratively disabled"
    NO_SUBNET_MANAGER = "no-subnet-manager", "a port is up but no subnet manager configured it"
    PORT_SLOW = "port-slow", "a port runs below its rate or on fewer lanes"
    LINK_LAYER = "link-layer", "a port runs another link layer than the ports of its kind"
    HCA_IDENTITY = "hca-identity", "an HCA has no GUID, or fewer ports than others of its kind"
    TRANSPORT_ERRORS = "transport-errors", "an HCA retransmits or times out more and more"
    PORT_ERRORS = "port-errors", "error counters of a port grow"
    PORT_MODULE = "port-module", "the cable or transceiver of a port reports a fault"
    ETHERNET_SLOW = "ethernet-slow", "a network interface negotiated a lower speed than it supports"
    # GPUDirect RDMA
    PEER_MEMORY = "peer-memory", "the peer memory module is missing or not registered"
    VERBS = "verbs", "verbs devices cannot be opened"
    MEMLOCK = "memlock", "the limit of locked memory is too low for RDMA"
    BAR1_FULL = "bar1-full", "BAR1 has too little free space"
    ACS = "acs", "ACS redirects peer-to-peer traffic to the root complex"
    IOMMU = "iommu", "an IOMMU translates the DMA of GPUs or HCAs"
    READ_REQUEST = "read-request", "MaxReadReq of an HCA is small"
    MAX_PAYLOAD = "max-payload", "MaxPayload differs along the path"
    # the host
    CPU_MISSING = "cpu-missing", "fewer CPUs or cores than the reference machine has"
    CPU_OFFLINE = "cpu-offline", "CPUs are offline"
    COMMAND_LINE = "command-line", "the kernel command line switches off what a machine with GPUs needs"
    NUMA_TABLES = "numa-tables", "the firmware's NUMA tables contradict sockets, memory or PCI tree"
    NUMA_MODE = "numa-mode", "NUMA nodes divide the machine differently than in the reference machine"
    NODE_EMPTY = "node-empty", "a NUMA node with CPUs has no memory"
    CLOCK_SOURCE = "clock-source", "the kernel does not use the CPU's time stamp counter as its clock"
    CPU_CLOCK = "cpu-clock", "a setting keeps CPUs below their highest clock"
    MEMORY_MISSING = "memory-missing", "less memory than the reference machine has"
    DIMM_SPEED = "dimm-speed", "DIMMs of one machine run at different speeds"
    DIMM_ERRORS = "dimm-errors", "errors of host memory (EDAC)"
    MACHINE_CHECK = "machine-check", "errors of CPUs (machine checks)"
    CPU_THROTTLED = "cpu-throttled", "CPU clocks are held down by temperature"
    DRIVER_STUCK = "driver-stuck", "the kernel logged tasks that hung in the NVIDIA driver"
    DISK_ERRORS = "disk-errors", "the kernel logged I/O errors of a disk"
    UNPLUGGED = "unplugged", "a PCIe slot lost its device while the system was running"
    DISK = "disk", "a disk is missing or an array is degraded"
    ARRAY_FAILED = "array-failed", "an array is inactive: its data cannot be read"
    GOVERNOR = "governor", "the CPU frequency governor lowers the clock"
    # the kernel log
    XID = "xid", "the driver logged an Xid error that asks for a reset of the GPU"
    XID_APPLICATION = "xid-application", "the driver logged an Xid error that a program causes by itself"
    XID_CONTAINED = "xid-contained", "the driver logged a memory error (Xid) that stopped only one program"
    XID_PCIE = "xid-pcie", "the driver logged an Xid error that points at the GPU's PCIe link"
    XID_SOFTWARE = "xid-software", "the driver logged an Xid error that comes from driver, vGPU or guest software"
    XID_NOTICE = "xid-notice", "the driver logged an Xid error that asks for no action unless it comes back"
    RETIREMENT_FAILED = "retirement-failed", "the driver logged that a page retirement or row remapping failed"
    AER_LOGGED = "aer-logged", "the kernel logged PCIe errors"
    # measurements
    SLOW = "slow", "a measured figure is below the expected one"
    WRONG_DATA = "wrong-data", "data did not arrive intact"
    MEASUREMENT_FAILED = "measurement-failed", "a measurement failed or hung"
    BURN_IN = "burn-in", "burn-in stopped or did not complete"
    # what other tools report
    TEST_FAILED = "test-failed", "a diagnostic of another tool failed"
    TOOL_ERROR = "tool-error", "a library or service logged an error that nothing else explains"
    TRANSFER_FAILED = "transfer-failed", "a program reports that a transfer to another host failed"
    TRANSFER_UNANSWERED = "transfer-unanswered", "a transfer to another host got no answer"
    RDMA_ACCESS = "rdma-access", "an HCA may not access the memory that a transfer uses"
    TCP_FALLBACK = "tcp-fallback", "NCCL moves data over TCP although the machine has HCAs"
    GDR_UNUSED = "gdr-unused", "NCCL moves data to HCAs without GPUDirect RDMA"
    # dgxcheck itself
    CHECK_FAILED = "check-failed", "a check failed with an internal error"


DEVICE_DEAD = frozenset(
    {Fault.GPU_LOST, Fault.GPU_NOT_STARTED, Fault.GPU_UNPOWERED, Fault.HCA_NOT_STARTED, Fault.HCA_UNRESPONSIVE}
)
"""The device as a whole does not work: nothing resets it, and what else is wrong with it follows from that."""
DEVICE_ABSENT = frozenset({Fault.GPU_MISSING, Fault.HCA_MISSING})
"""A device that should be present is not."""
