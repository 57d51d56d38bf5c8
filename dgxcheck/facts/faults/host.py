"""Faults of the host, of the driver with its library and services, and of programs."""

from __future__ import annotations

from dgxcheck.facts.faults.kind import LINK_STEPS, RESET_STEPS, RMA_STEPS, SOLDERED, FaultKind


class Driver:
    """In the order of the manual page."""

    # fmt: off
    LIBRARY_MISSING = FaultKind("software", steps=("change-setting",))
    LIBRARY_BROKEN = FaultKind("software", steps=("change-setting",))
    MODULE_REFUSED = FaultKind("software", steps=("change-setting", "load-module", "reboot"))
    MODULE_UNSIGNED = FaultKind("software", steps=("change-setting", "load-module", "reboot"))
    MODULE_NOT_BUILT = FaultKind("software", steps=("change-setting", "load-module", "reboot"))
    ADD_ON_MODULE = FaultKind("software", about=("host", "add-on modules"), steps=("change-setting",))
    GPU_REFUSED = FaultKind("software", steps=("change-setting", "reboot"))
    GPU_UNRECOGNISED = FaultKind("hardware", steps=("inspect", "power-cycle", "contact-vendor"))
    START_MEMORY = FaultKind("program", steps=("inspect", "load-module", "reboot"))
    DRIVER_NOT_LOADED = FaultKind("software", steps=("load-module", "reboot"))
    DRIVER_FAILED = FaultKind("software", steps=("inspect", "load-module", "reboot"))
    DRIVER_UNRESPONSIVE = FaultKind("software", steps=("reboot", "power-cycle"))
    DRIVER_MISMATCH = FaultKind("software", steps=("inspect", "load-module", "reboot"))
    CLIENT_MISMATCH = FaultKind("software")
    CUDA_TOO_NEW = FaultKind("program", about=("host", "CUDA of programs"), steps=("inspect",))
    GPU_BUSY = FaultKind("program", about=("host", "programs"), warns="watch", steps=("inspect",))
    NOUVEAU = FaultKind("software", steps=("change-setting", "reboot"))
    DRIVER_UNBOUND = FaultKind("software", steps=("load-module", "reboot"))
    DRIVER_OTHER = FaultKind("setting", warns="next-maintenance", steps=("change-setting",))
    MODULE_NOT_LOADED = FaultKind("software", warns="now", steps=("load-module",))
    PERSISTENCE_OFF = FaultKind("setting", about=("gpu", "persistence mode"), fails="next-maintenance")
    PERSISTENCE_UNSET = FaultKind("setting", warns="next-maintenance", fails="next-maintenance")
    DEVICE_NODE = FaultKind("software")
    FABRIC_MANAGER_VERSION = FaultKind("software", about=("fabric-manager", ""),
        steps=("change-setting", "restart-service", "reboot"))
    FABRIC_MANAGER_DOWN = FaultKind("software", about=("fabric-manager", ""),
        steps=("inspect", "restart-service", "reboot"))
    FABRIC_MANAGER_ERROR = FaultKind("software", about=("fabric-manager", ""))
    UMAD_MISSING = FaultKind("software", about=("fabric-manager", ""),
        steps=("load-module", "restart-service", "reboot"))
    FABRIC_FAILED = FaultKind("hardware", about=("gpu", "fabric"),
        steps=("inspect", "reset-gpu", "restart-service", "reboot"))
    NOT_READY = FaultKind("software", steps=("inspect", "load-module", "reboot"))


class Host:
    """In the order of the manual page."""

    # fmt: off
    # the host
    CPU_MISSING = FaultKind("hardware")
    CPU_OFFLINE = FaultKind("setting", about=("host", "CPUs"), steps=("change-setting", "reboot"), alone=True)
    COMMAND_LINE = FaultKind("setting")
    NUMA_TABLES = FaultKind("setting", disturbs="host", about=("host", "NUMA setting"))
    NUMA_MODE = FaultKind("setting", disturbs="host")
    NODE_EMPTY = FaultKind("setting")
    CLOCK_SOURCE = FaultKind("setting")
    CPU_CLOCK = FaultKind("setting")
    MEMORY_MISSING = FaultKind("hardware", about=("host", "memory"), soldered=SOLDERED)
    DIMM_SPEED = FaultKind("setting", about=("host", "memory"))
    DIMM_ERRORS = FaultKind("hardware", about=("host", "memory"), soldered=SOLDERED)
    MEMORY_ECC = FaultKind("setting", about=("host", "memory ECC"))
    MACHINE_CHECK = FaultKind("hardware", about=("host", "CPUs"))
    POWER_SUPPLY = FaultKind("hardware", about=("host", "power supply"))
    FAN = FaultKind("hardware", about=("host", "cooling"))
    LEAK = FaultKind("hardware", about=("host", "cooling"), warns="now", steps=("inspect", "contact-vendor"))
    BATTERY = FaultKind("hardware", about=("host", "batteries"), steps=("inspect",))
    BMC_SILENT = FaultKind("environment", about=("host", "BMC"))
    CPU_THROTTLED = FaultKind("environment")
    DRIVER_STUCK = FaultKind("software", steps=("inspect", "reboot", "power-cycle"))
    MODULE_STUCK = FaultKind("software", steps=("inspect", "reboot"))
    KERNEL_PANIC = FaultKind("software", steps=("inspect", "reboot", "contact-vendor"))
    TASKS_HUNG = FaultKind("software", warns="watch")
    OUT_OF_MEMORY = FaultKind("program", warns="watch")
    SERVICE_KILLED = FaultKind("software", warns="now")
    OUT_OF_FILES = FaultKind("program")
    NETWORK_TABLE_FULL = FaultKind("setting")
    INTERRUPT_OFF = FaultKind("software", about=("host", "interrupts"), steps=("inspect", "reboot"))
    BOUNCE_BUFFERS = FaultKind("setting", about=("host", "bounce buffers"))
    PROGRAM_CRASHED = FaultKind("program", about=("host", "programs"), warns="watch")
    ARRAY_FAILED = FaultKind("hardware", steps=("inspect", "reseat", "replace"))
    ARRAY_READ_ONLY = FaultKind("setting", about=("host", "disks"), warns="now", steps=("change-setting",), alone=True)
    DISK_ERRORS = FaultKind("hardware", steps=("inspect", "replace"))
    RAID_ALARM = FaultKind("hardware", steps=("inspect",), alone=True)
    FILE_SYSTEM = FaultKind("hardware", about=("host", "disks"), steps=("inspect",), alone=True)
    FILE_SYSTEM_READ_ONLY = FaultKind("hardware", about=("host", "disks"), steps=("inspect", "reboot"), alone=True)
    FILE_SERVER = FaultKind("environment")
    UNPLUGGED = FaultKind("hardware", steps=("inspect", "power-cycle", "reseat", "contact-vendor"), alone=True)
    DISK = FaultKind("hardware", about=("host", "disks"))
    DISK_FULL = FaultKind("program", about=("host", "disks"), warns="now", steps=("inspect",))
    CLOCK_UNSYNCED = FaultKind("setting", about=("host", "time synchronisation"), warns="next-maintenance",
        steps=("inspect",))
    NUMA_BALANCING = FaultKind("setting")
    GOVERNOR = FaultKind("setting")
    # the kernel log
    DRIVER_ERROR = FaultKind("software", warns="watch", steps=("inspect", "contact-vendor"), alone=True)
    DRIVER_REBOOT = FaultKind("software", steps=("reboot", "power-cycle", "contact-vendor"))
    CONFIDENTIAL_COMPUTING = FaultKind("software", steps=("reboot", "contact-vendor"))
    XID = FaultKind("hardware", about=("gpu", ""))
    XID_APPLICATION = FaultKind("program", steps=("check-program",), alone=True)
    XID_PROGRAMS = FaultKind("hardware", steps=RMA_STEPS, alone=True)
    XID_CONTAINED = FaultKind("hardware", about=("gpu", "memory"), fails="next-drain",
        steps=("restart-program", "reset-gpu", *RMA_STEPS), alone=True)
    XID_PCIE = FaultKind("hardware", about=("gpu", ""), steps=("inspect", *LINK_STEPS), alone=True)
    XID_PEER = FaultKind("hardware", steps=("inspect", "reset-gpu", "reboot", "contact-vendor"), alone=True)
    XID_SIGNAL = FaultKind("hardware", steps=("reset-gpu", "reboot", "inspect", "contact-vendor"), alone=True)
    XID_RATE = FaultKind("hardware", about=("gpu", ""), warns="next-drain", steps=("inspect", "contact-vendor"),
        alone=True)
    XID_LINK_OFF = FaultKind("software", steps=("inspect", *RESET_STEPS), alone=True)
    XID_SOFTWARE = FaultKind("software", steps=("inspect", "contact-vendor"), alone=True)
    XID_NOTICE = FaultKind("hardware", about=("gpu", ""), warns="watch", fails="watch",
        steps=("watch", "contact-vendor"), alone=True)
    AER_LOGGED = FaultKind("hardware", steps=("inspect", *LINK_STEPS), alone=True)
    # measurements
    SLOW = FaultKind("hardware")
    WRONG_DATA = FaultKind("hardware")
    MEASUREMENT_FAILED = FaultKind("hardware")
    BURN_IN = FaultKind("hardware")
    # what other tools report
    CONTAINER_RUNTIME = FaultKind("software", about=("host", "container runtime"))
    CONTAINER_ERROR = FaultKind("software", about=("host", "container runtime"), steps=("inspect",))
    GPUS_NOT_OFFERED = FaultKind("software", about=("host", "GPUs for the scheduler"), steps=("inspect",))
    CONTAINER_DEVICES = FaultKind("software", about=("host", "container runtime"), disturbs="programs")
    TEST_FAILED = FaultKind("hardware", about=("host", "results of diagnostics"))
    TOOL_ERROR = FaultKind("program", about=("host", "results of NCCL"))
    SHARED_MEMORY = FaultKind("setting", about=("host", "shared memory"), steps=("inspect",))
    PROGRAM_ERROR = FaultKind("program", about=("host", "results of NCCL"), steps=("inspect",), alone=True)
    COLLECTIVE_TIMEOUT = FaultKind("program", about=("host", "results of NCCL"))
    NO_CONNECTION = FaultKind("environment", about=("host", "transfers to other hosts"))
    TRANSFER_FAILED = FaultKind("environment", about=("host", "transfers to other hosts"))
    TRANSFER_UNANSWERED = FaultKind("environment", about=("host", "path to other hosts"))
    RDMA_ACCESS = FaultKind("setting", about=("host", "GPUDirect RDMA"))
    TCP_FALLBACK = FaultKind("setting", about=("host", "network of NCCL"))
    GDR_UNUSED = FaultKind("setting", about=("host", "peer memory module"))
    # dgxcheck itself
    CHECK_FAILED = FaultKind("software")
