"""Faults of PCIe, NVLinks, InfiniBand, Ethernet, and of GPUDirect RDMA over them."""

from __future__ import annotations

from dgxcheck.facts.faults.kind import (
    ADAPTER_STEPS,
    LINK_STEPS,
    NVSWITCH_STEPS,
    RESET_STEPS,
    RMA_STEPS,
    FaultKind,
)


class Links:
    """In the order of the manual page."""

    # fmt: off
    # PCIe
    LINK_NARROW = FaultKind("hardware", about=("link", ""), steps=LINK_STEPS)
    LINK_UNSEEN = FaultKind("hardware", about=("link", ""), steps=("inspect", *LINK_STEPS), alone=True)
    LINK_SLOW = FaultKind("hardware", steps=("change-setting", *LINK_STEPS), disturbs="host")
    LINK_LIMITED = FaultKind("setting", warns="next-maintenance", fails="next-maintenance",
        steps=("change-setting", "reboot"))
    LINK_DEGRADED = FaultKind("hardware", about=("link", ""), steps=LINK_STEPS)
    LINK_UNTRAINED = FaultKind("hardware", about=("link", ""), steps=("inspect", *LINK_STEPS))
    LINK_TESTED = FaultKind("hardware", about=("link", ""), steps=("inspect", *LINK_STEPS), alone=True)
    DEVICE_DISABLED = FaultKind("setting", steps=("inspect", "reboot"))
    PCIE_REPLAYS = FaultKind("hardware", about=("link", ""), warns="watch")
    AER_CORRECTABLE = FaultKind("hardware", warns="watch")
    AER_STORM = FaultKind("hardware", about=("link", ""), steps=LINK_STEPS)
    AER_UNCORRECTABLE = FaultKind("hardware", about=("link", ""), steps=("inspect", *LINK_STEPS), alone=True)
    SWITCH_MISSING = FaultKind("hardware", steps=("inspect", "reboot", "power-cycle", "contact-vendor"))
    BAR1_SMALL = FaultKind("setting", steps=("change-setting", "reboot"))
    BAR1_MISMATCH = FaultKind("setting", steps=("inspect", "reboot"))
    NUMA_UNKNOWN = FaultKind("setting", warns="next-maintenance", fails="next-maintenance", disturbs="host")
    # NVLink and peer access
    NVLINK_DOWN = FaultKind("hardware", about=("gpu", "NVLink"))
    NVLINK_REPORTED = FaultKind("hardware", about=("gpu", "NVLink"),
        steps=("inspect", "reset-gpu", "reboot", *RMA_STEPS), alone=True)
    NVLINK_UNDETECTED = FaultKind("hardware", steps=("inspect", "reset-gpu", "load-module", "reboot"))
    NVLINK_MISWIRED = FaultKind("hardware",
        steps=("inspect", "power-cycle", "field-diagnostic", "reseat", "contact-vendor"))
    NVLINK_ONE_SIDED = FaultKind("hardware")
    NVLINK_SLOW = FaultKind("hardware")
    NVLINK_ERRORS = FaultKind("hardware", about=("gpu", "NVLink"), warns="watch")
    PEER_CONTAINED = FaultKind("hardware", about=("gpu", "NVLink"), warns="now",
        steps=("inspect", "restart-program", "reset-gpu"))
    NVSWITCH = FaultKind("hardware", steps=("reset-gpu", *NVSWITCH_STEPS))
    NVSWITCH_FATAL = FaultKind("hardware", about=("host", "NVSwitches"), steps=NVSWITCH_STEPS)
    NVSWITCH_NOTICE = FaultKind("hardware", about=("host", "NVSwitches"), steps=("inspect", "contact-vendor"),
        alone=True)
    NVSWITCH_WATCHED = FaultKind("hardware", about=("host", "NVSwitches"), warns="watch",
        steps=("watch", "contact-vendor"), alone=True)
    NVSWITCH_MISSING = FaultKind("hardware", steps=NVSWITCH_STEPS)
    NVSWITCH_PORT = FaultKind("hardware", warns="watch", steps=("inspect", *NVSWITCH_STEPS))
    FUNCTION_MISSING = FaultKind("hardware", steps=("inspect", "reboot", "contact-vendor"))
    NVSWITCH_DRIVER = FaultKind("software", steps=("inspect", *NVSWITCH_STEPS))
    FABRIC_UNHEALTHY = FaultKind("hardware")
    FABRIC_OUT_OF_SYNC = FaultKind("software", about=("fabric-manager", ""),
        steps=("inspect", "restart-service", "reboot"))
    FABRIC_DEGRADED = FaultKind("hardware", warns="watch", steps=("inspect", "watch", "contact-vendor"), alone=True)
    FABRIC_MISCONFIGURED = FaultKind("setting", steps=("inspect",))
    P2P_BLOCKED = FaultKind("setting", about=("host", "P2P setting"))
    P2P_TESTED = FaultKind("hardware", about=("gpu", ""), steps=("inspect", *RESET_STEPS, *LINK_STEPS), alone=True)
    # InfiniBand and Ethernet
    HCA_MISSING = FaultKind("hardware")
    HCA_NOT_STARTED = FaultKind("hardware", steps=("load-module", *ADAPTER_STEPS))
    HCA_BOOT = FaultKind("hardware", steps=("inspect", "contact-vendor"))
    HCA_UNLISTED = FaultKind("software", steps=("inspect", "reboot"))
    HCA_UNRESPONSIVE = FaultKind("hardware", steps=("inspect", *ADAPTER_STEPS), disturbs="traffic")
    HCA_FATAL = FaultKind("hardware", about=("host", "HCAs"), steps=("inspect", *ADAPTER_STEPS))
    HCA_LOST = FaultKind("hardware", steps=("inspect", *ADAPTER_STEPS))
    HCA_HEALTH = FaultKind("software", warns="watch", steps=("inspect", "contact-vendor"))
    HCA_STALLED = FaultKind("environment", warns="watch", steps=("inspect",))
    HCA_FLASH_RECOVERY = FaultKind("software", steps=("change-setting", *ADAPTER_STEPS))
    HCA_OVERHEATING = FaultKind("environment", steps=("inspect",))
    HCA_POWER = FaultKind("environment")
    HCA_FIRMWARE = FaultKind("software", warns="next-maintenance", fails="next-maintenance", steps=("change-setting",),
        disturbs="traffic")
    PORT_MISSING = FaultKind("hardware")
    PORT_DOWN = FaultKind("environment")
    PORT_EVENT = FaultKind("environment", about=("host", "ports"), warns="now", steps=("inspect", "reseat"))
    PORT_DISABLED = FaultKind("setting", steps=("change-setting", "reseat", "replace"))
    NO_SUBNET_MANAGER = FaultKind("environment", about=("subnet-manager", ""))
    PORT_SLOW = FaultKind("environment")
    LINK_LAYER = FaultKind("setting", warns="next-maintenance", fails="next-maintenance")
    PORT_SETTING = FaultKind("setting", warns="next-maintenance", fails="next-maintenance", steps=("change-setting",),
        disturbs="traffic")
    HCA_IDENTITY = FaultKind("hardware", steps=("inspect", *ADAPTER_STEPS))
    TRANSPORT_ERRORS = FaultKind("environment", warns="watch", steps=("inspect", "reseat", "replace"), alone=True)
    TRANSPORT_FLOOD = FaultKind("environment", steps=("inspect", "reseat", "replace"), alone=True)
    FABRIC_ERRORS = FaultKind("environment", warns="watch", steps=("inspect",), alone=True)
    RECEIVER_NOT_READY = FaultKind("program", warns="watch", steps=("inspect",), alone=True)
    PORT_ERRORS = FaultKind("hardware")
    PORT_MODULE = FaultKind("hardware")
    CABLE_SWAPPED = FaultKind("environment", warns="next-maintenance", steps=("reseat",))
    CABLE_MISPLACED = FaultKind("environment", warns="next-maintenance", steps=("reseat",))
    CABLE_MISSING = FaultKind("environment", steps=("inspect", "reseat", "replace"))
    UPLINKS_UNEVEN = FaultKind("environment", steps=("inspect", "reseat", "replace"))
    SUBNET_SPLIT = FaultKind("environment", steps=("inspect", "reseat", "replace"))
    GUID_DUPLICATE = FaultKind("hardware", steps=("inspect", "contact-vendor"))
    NODE_NAME = FaultKind("setting", warns="next-maintenance", steps=("change-setting",))
    PLAN_NAME = FaultKind("setting", warns="next-maintenance", steps=("change-setting",))
    ETHERNET_SLOW = FaultKind("environment")
    ETHERNET_DOWN = FaultKind("environment")
    # GPUDirect RDMA
    PEER_MEMORY = FaultKind("software", about=("host", "peer memory module"))
    VERBS = FaultKind("software", about=("host", "verbs device nodes"))
    MEMLOCK = FaultKind("setting", about=("host", "memlock limit"))
    BAR1_FULL = FaultKind("program", steps=("stop-jobs",))
    ACS = FaultKind("setting")
    ATS = FaultKind("setting", steps=("change-setting", "reboot"))
    IOMMU = FaultKind("setting", disturbs="host")
    IOMMU_BLOCKED = FaultKind("software", warns="watch", steps=("inspect",))
    IOMMU_UNANSWERED = FaultKind("hardware", steps=("inspect", "reboot", "contact-vendor"))
    READ_REQUEST = FaultKind("setting", warns="next-maintenance", fails="next-maintenance", disturbs="host")
    MAX_PAYLOAD = FaultKind("setting", disturbs="host")
