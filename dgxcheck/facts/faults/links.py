"""Faults of PCIe, NVLinks, InfiniBand, Ethernet, and of GPUDirect RDMA over them."""

from __future__ import annotations

from dgxcheck.facts.faults.kind import (
    ADAPTER_STEPS,
    DEBUG,
    FM,
    LINK_STEPS,
    NCCL,
    NVLINK_XIDS,
    NVML,
    NVSWITCH_STEPS,
    OWN,
    README,
    RESET_STEPS,
    RMA_STEPS,
    FaultKind,
)


class Links:
    """In the order of the manual page."""

    # fmt: off
    # PCIe
    LINK_NARROW = FaultKind("a PCIe link is trained at fewer lanes than both ends have", "hardware",
        about=("link", ""), steps=LINK_STEPS, source=DEBUG)
    LINK_UNSEEN = FaultKind(
        "a PCIe link has few of the lanes of its device, and what its slot has is not shown",
        "hardware", about=("link", ""), steps=("inspect", *LINK_STEPS), alone=True,
        remedy="compare LnkCap of the port above it (lspci -tv shows which, lspci -vv as root): with as few lanes there"
        " it is the design of slot or riser; with more, seat, riser or lanes are bad", source=DEBUG)
    LINK_SLOW = FaultKind("a PCIe link is limited to a lower generation than both ends have", "hardware",
        steps=("change-setting", *LINK_STEPS), disturbs="host", source=DEBUG)
    LINK_LIMITED = FaultKind("a setting holds a PCIe link below the generation that both ends support",
        "setting", warns="next-maintenance", fails="next-maintenance", steps=("change-setting", "reboot"), source=DEBUG)
    LINK_DEGRADED = FaultKind("a PCIe link trained below the generation that ends and settings allow",
        "hardware", about=("link", ""), steps=LINK_STEPS, source=DEBUG)
    LINK_UNTRAINED = FaultKind("a PCIe link did not train at any speed", "hardware",
        about=("link", ""), steps=("inspect", *LINK_STEPS), source=DEBUG)
    LINK_TESTED = FaultKind(
        "another tool calls the PCIe link of a GPU narrow or slow, or measured too little bandwidth or too high a"
        " latency over it", "hardware",
        about=("link", ""), steps=("inspect", *LINK_STEPS), alone=True,
        remedy="compare LnkSta with LnkCap of this GPU and of the port above it (lspci -vv as root), and its link width"
        " and generation in nvidia-smi -q while the test runs; then test again with nothing else on the host: other"
        " traffic takes bandwidth, and the tool's minimum may be another machine's",
        source="https://github.com/NVIDIA/DCGM/blob/master/dcgmlib/dcgm_errors.h")
    DEVICE_DISABLED = FaultKind("memory accesses or bus mastering of a PCI function are off",
        "setting", steps=("inspect", "reboot"), source=OWN)
    PCIE_REPLAYS = FaultKind("PCIe replays above the threshold rate", "hardware", about=("link", ""), warns="watch")
    AER_CORRECTABLE = FaultKind("correctable PCIe errors above the threshold rate", "hardware", warns="watch")
    AER_STORM = FaultKind("correctable PCIe errors, ten times a day's number in each hour", "hardware",
        about=("link", ""), steps=LINK_STEPS, source="Linux Documentation/PCI/pcieaer-howto")
    AER_UNCORRECTABLE = FaultKind("non-fatal or fatal PCIe errors", "hardware",
        about=("link", ""), steps=("inspect", *LINK_STEPS), alone=True, source="Linux Documentation/PCI/pcieaer-howto")
    SWITCH_MISSING = FaultKind("fewer PCIe switches above GPUs below one socket than below the other",
        "hardware", steps=("inspect", "reboot", "power-cycle", "contact-vendor"), source=OWN)
    BAR1_SMALL = FaultKind("BAR1 is smaller than the model's or unassigned", "setting",
        steps=("change-setting", "reboot"), source=README)
    BAR1_MISMATCH = FaultKind("NVML and the PCI bus report different sizes of BAR1", "setting",
        steps=("inspect", "reboot"),
        remedy="see whether EnableResizableBar or RegistryDwords in /proc/driver/nvidia/params concern BAR1, and"
        " whether dmesg shows that the BAR was resized after the driver was loaded, which keeps the size that it found",
        source="open-gpu-kernel-modules, nv-reg.h (NVreg_EnableResizableBar)")
    NUMA_UNKNOWN = FaultKind("firmware does not report the NUMA node of a host bridge", "setting",
        warns="next-maintenance", fails="next-maintenance", disturbs="host")
    # NVLink and peer access
    NVLINK_DOWN = FaultKind("NVLinks are down", "hardware", about=("gpu", "NVLink"))
    NVLINK_REPORTED = FaultKind("another tool reports NVLinks as down, which nothing else confirms",
        "hardware", about=("gpu", "NVLink"), steps=("inspect", "reset-gpu", "reboot", *RMA_STEPS), alone=True,
        remedy="confirm it with nvidia-smi nvlink -s: DCGM also reports boards that have none or lack a bridge",
        source=OWN)
    NVLINK_UNDETECTED = FaultKind("the driver could not detect which NVLinks of a GPU are connected", "hardware",
        steps=("inspect", "reset-gpu", "load-module", "reboot"), source=OWN)
    NVLINK_MISWIRED = FaultKind("NVLinks lead to another GPU than in the reference machine",
        "hardware", steps=("inspect", "power-cycle", "field-diagnostic", "reseat", "contact-vendor"), source=OWN)
    NVLINK_ONE_SIDED = FaultKind("an NVLink is up at one end only", "hardware")
    NVLINK_SLOW = FaultKind("an NVLink runs at a lower generation or rate than it should", "hardware")
    NVLINK_ERRORS = FaultKind("NVLink error counters grow", "hardware", about=("gpu", "NVLink"), warns="watch")
    PEER_CONTAINED = FaultKind(
        "an access to the memory of another GPU over NVLink ended in an error that was contained", "hardware",
        about=("gpu", "NVLink"), warns="now", steps=("inspect", "restart-program", "reset-gpu"),
        remedy=f"the GPU that reports it may be sound: look for {NVLINK_XIDS}, 94 and 95 and for SXids at that time on"
        " every GPU of the job, in a rack on all trays, and at Fabric in nvidia-smi -q; with none, check the program",
        source="CUDA driver API, CUresult: CUDA_ERROR_CONTAINED")
    NVSWITCH = FaultKind("an NVSwitch reported an error (SXid) that takes NVLinks down", "hardware",
        steps=("reset-gpu", *NVSWITCH_STEPS), source=FM)
    NVSWITCH_FATAL = FaultKind("an NVSwitch reported an error (SXid) that is fatal to the whole fabric", "hardware",
        about=("host", "NVSwitches"), steps=NVSWITCH_STEPS, source=FM)
    NVSWITCH_NOTICE = FaultKind(
        "an NVSwitch reported an error (SXid) that asks to check cooling, seating or the GPU at that port", "hardware",
        about=("host", "NVSwitches"), steps=("inspect", "contact-vendor"), alone=True, source=FM)
    NVSWITCH_WATCHED = FaultKind(
        "an NVSwitch reported a non-fatal error (SXid) that asks for no action yet", "hardware",
        about=("host", "NVSwitches"), warns="watch", steps=("watch", "contact-vendor"), alone=True, source=FM)
    NVSWITCH_MISSING = FaultKind(
        "fewer NVSwitches than the reference machine has, or than NVLinks lead to", "hardware", steps=NVSWITCH_STEPS,
        source=FM)
    NVSWITCH_PORT = FaultKind(
        "the port of an adapter that leads to NVSwitches counts errors", "hardware", warns="watch",
        steps=("inspect", *NVSWITCH_STEPS), source=FM)
    FUNCTION_MISSING = FaultKind(
        "a PCI function that GPUs or NVSwitches are reached through is missing, while others like it are there",
        "hardware", steps=("inspect", "reboot", "contact-vendor"), source=OWN)
    NVSWITCH_DRIVER = FaultKind("no driver is bound to an NVSwitch", "software",
        steps=("inspect", *NVSWITCH_STEPS), source=FM)
    FABRIC_UNHEALTHY = FaultKind("the driver reports the routes of a GPU through the fabric as unhealthy", "hardware")
    FABRIC_OUT_OF_SYNC = FaultKind(
        "what the driver knows of the NVSwitch fabric is out of date: no multicast over NVLink (NVLS)", "software",
        about=("fabric-manager", ""), steps=("inspect", "restart-service", "reboot"),
        remedy="find out why it was started again while jobs ran, as after an upgrade of packages; meanwhile jobs run"
        " with NCCL_NVLS_ENABLE=0",
        source="https://github.com/NVIDIA/nvshmem/issues/40")
    FABRIC_DEGRADED = FaultKind("the driver reports reduced bandwidth or a recovery of the fabric",
        "hardware", warns="watch", steps=("inspect", "watch", "contact-vendor"), alone=True, source=NVML)
    FABRIC_MISCONFIGURED = FaultKind(
        "the driver reports an incorrect configuration of the fabric", "setting", steps=("inspect",), source=NVML)
    P2P_BLOCKED = FaultKind("peer access is refused by the driver or a setting", "setting",
        about=("host", "P2P setting"),
        remedy="nvidia-smi topo -p2p r shows what the driver says of each pair; where it says OK look at the program's"
        " NCCL_P2P_ variables and its container, else at ACS, an IOMMU and NVreg_RegistryDwords", source=NCCL)
    P2P_TESTED = FaultKind(
        "a test of another tool read other data from the memory of a peer GPU than it had written there", "hardware",
        about=("gpu", ""), steps=("inspect", *RESET_STEPS, *LINK_STEPS), alone=True,
        remedy="test every pair (p2pBandwidthLatencyTest, simpleP2P): where all pairs fail, ACS or an IOMMU is in their"
        " way; where those of one GPU do, look at its NVLinks (nvidia-smi nvlink -e) and at the kernel log; until then"
        " what jobs exchange between these GPUs may be wrong",
        source="https://github.com/NVIDIA/DCGM/blob/master/dcgmlib/dcgm_errors.h")
    # InfiniBand and Ethernet
    HCA_MISSING = FaultKind("fewer HCAs than the reference machine has", "hardware")
    HCA_NOT_STARTED = FaultKind("the driver of an HCA gave up on it", "hardware", steps=("load-module", *ADAPTER_STEPS),
        source="NVIDIA MFT user manual")
    HCA_BOOT = FaultKind("a BlueField logged an error of its boot", "hardware", steps=("inspect", "contact-vendor"),
        remedy="see whether its host has it (lspci, ibstat), and what its boot logged before and after (DISPLAY_LEVEL 2"
        " in /dev/rshim0/misc) and shows on its console (/dev/rshim0/console)", source="rshim(8)")
    HCA_UNLISTED = FaultKind("the driver holds an HCA, and no RDMA device is made of it", "software",
        steps=("inspect", "reboot"),
        remedy="compare lspci, ibstat and ls /sys/class/infiniband on the host: a container sees HCAs of its host"
        " that it was not given; where it is missing there too, look whether mlx5_ib is loaded (lsmod) and what"
        " mlx5_core logged", source="Linux Documentation/ABI/testing/sysfs-bus-pci: bind, unbind")
    HCA_UNRESPONSIVE = FaultKind("the firmware of an HCA stopped responding", "hardware",
        steps=("inspect", *ADAPTER_STEPS), disturbs="traffic", source="NVIDIA MFT user manual")
    HCA_FATAL = FaultKind("a program received a fatal error of an HCA", "hardware",
        about=("host", "HCAs"), steps=("inspect", *ADAPTER_STEPS),
        remedy="the kernel log (mlx5_core) names the HCA, and says whether its firmware recovered; compare its firmware"
        " with that of the others", source="rdma-core, ibv_get_async_event(3)")
    HCA_LOST = FaultKind("an HCA does not respond on PCIe", "hardware", steps=("inspect", *ADAPTER_STEPS),
        remedy="look for PCIe errors and link changes of the port above it in the kernel log; lspci -x shows nothing"
        " but ff of it where it is gone", source="Linux Documentation/PCI/pci-error-recovery")
    HCA_HEALTH = FaultKind("the firmware of an HCA reported an error that it survived", "software",
        warns="watch", steps=("inspect", "contact-vendor"), source=OWN)
    HCA_STALLED = FaultKind("a transmit queue of an adapter timed out", "environment", warns="watch",
        steps=("inspect",), source=OWN)
    HCA_FLASH_RECOVERY = FaultKind("an HCA is in flash recovery: it runs no firmware", "software",
        steps=("change-setting", *ADAPTER_STEPS), source="NVIDIA MFT user manual")
    HCA_OVERHEATING = FaultKind("the temperature sensors of an HCA reached their limit",
        "environment", steps=("inspect",), source=OWN)
    HCA_POWER = FaultKind("a slot reports less power than its HCA needs", "environment")
    HCA_FIRMWARE = FaultKind("HCA firmware differs from the others of its kind", "software",
        warns="next-maintenance", fails="next-maintenance", steps=("change-setting",),
        remedy="compare PSIDs and versions (mstflint -d BDF query); bring adapters of one PSID to the same release"
        " while no job uses them", disturbs="traffic", source=f"{OWN}; NVIDIA MFT user manual")
    PORT_MISSING = FaultKind("a port that the configuration names is missing", "hardware")
    PORT_DOWN = FaultKind("a port is down", "environment")
    PORT_EVENT = FaultKind("a program received the event that the link of a port went down",
        "environment", about=("host", "ports"), warns="now", steps=("inspect", "reseat"),
        remedy="ibstat shows the ports that are down now, the kernel log (mlx5_core: link down, port module events) the"
        " one that went down at that time; of that look at cable or transceiver and the error counters of both ends"
        " (mlxlink -m -c)", source="rdma-core, ibv_get_async_event(3)")
    PORT_DISABLED = FaultKind("a port is administratively disabled", "setting",
        steps=("change-setting", "reseat", "replace"),
        remedy="bring it up if a cable is plugged in and the port is to be used (mlxlink -d DEVICE --port_state UP)",
        source="NVIDIA MFT user manual")
    NO_SUBNET_MANAGER = FaultKind("a port is up but no subnet manager configured it",
        "environment", about=("subnet-manager", ""))
    PORT_SLOW = FaultKind("a port runs below its rate or on fewer lanes", "environment",
        remedy="ask both ends for the speeds and widths that they support and enable (ibportstate LID PORT query), and"
        " what the switch port is set to; only then clean, reseat or replace the cable", source="ibportstate(8)")
    LINK_LAYER = FaultKind("a port runs another link layer than the ports of its kind", "setting",
        warns="next-maintenance", fails="next-maintenance")
    PORT_SETTING = FaultKind("an adapter or port alone has another setting than all others of its kind", "setting",
        warns="next-maintenance", fails="next-maintenance", steps=("change-setting",), disturbs="traffic",
        remedy="find out which is right; while no job uses it set it as on the others (ip link, mlnx_qos; mlxconfig,"
        " then reset the adapter), and in what sets it at boot; MTU and flow control are set at the switch port too",
        source="ip-link(8); NVIDIA MFT user manual")
    HCA_IDENTITY = FaultKind("an HCA has no GUID, or fewer ports than others of its kind", "hardware",
        steps=("inspect", *ADAPTER_STEPS), source=OWN)
    TRANSPORT_ERRORS = FaultKind("an HCA retransmits or times out more and more", "environment",
        warns="watch", steps=("inspect", "reseat", "replace"), alone=True, source=OWN)
    TRANSPORT_FLOOD = FaultKind("an HCA retransmits or times out more than once a second",
        "environment", steps=("inspect", "reseat", "replace"), alone=True,
        source="NVIDIA NVSentinel, NIC health monitor: local_ack_timeout_err above 1 a second is a degradation")
    FABRIC_ERRORS = FaultKind(
        "the fabric discards or refuses packets of a port, or delivers those that were damaged on the way",
        "environment", warns="watch", steps=("inspect",), alone=True,
        remedy="look for the port of the fabric that has errors of its own (ibqueryerrors; on RoCE the counters of the"
        " switches): a bad cable elsewhere damages packets on the way, a congested or stalled receiver has them"
        " discarded; adapter and cable here need nothing",
        source="InfiniBand Architecture Specification: PortCounters")
    RECEIVER_NOT_READY = FaultKind(
        "an HCA repeats messages because receivers at the far end had no buffer ready (RNR)", "program", warns="watch",
        steps=("inspect",), alone=True,
        remedy="find the receiving programs at the far ends: they stall, or post too few receive buffers; adapter,"
        " cable and switch need nothing", source="InfiniBand Architecture Specification: RNR NAK")
    PORT_ERRORS = FaultKind("error counters of a port grow", "hardware",
        remedy="look at cable or transceiver and error counters of both ends (mlxlink -m -c); then clean, reseat or"
        " replace what they point at", source="NVIDIA MFT user manual")
    PORT_MODULE = FaultKind("the cable or transceiver of a port reports a fault", "hardware")
    CABLE_SWAPPED = FaultKind("two or more plugs of a fabric are in each other's place", "environment",
        warns="next-maintenance", steps=("reseat",), source=OWN)
    CABLE_MISPLACED = FaultKind("a cable of a fabric leads to another switch than it should",
        "environment", warns="next-maintenance", steps=("reseat",), source=OWN)
    CABLE_MISSING = FaultKind("a link of a fabric is missing that its plan has, or its fellows",
        "environment", steps=("inspect", "reseat", "replace"), source=OWN)
    UPLINKS_UNEVEN = FaultKind("a switch of a fabric has fewer uplinks than the others",
        "environment", steps=("inspect", "reseat", "replace"), source=OWN)
    SUBNET_SPLIT = FaultKind("a part of a fabric has no link to the rest of it", "environment",
        steps=("inspect", "reseat", "replace"), source=OWN)
    GUID_DUPLICATE = FaultKind("two devices of a fabric have one GUID", "hardware",
        steps=("inspect", "contact-vendor"), source=OWN)
    NODE_NAME = FaultKind("devices of a fabric have one name", "setting",
        warns="next-maintenance", steps=("change-setting",),
        remedy="find the machines by the GUIDs of these adapters (ibstat shows them), and give each a host name of its"
        " own; rdma-ndd then sets the node descriptions", source="rdma-ndd(8)")
    PLAN_NAME = FaultKind("a device of a fabric has another name than in its plan", "setting",
        warns="next-maintenance", steps=("change-setting",),
        remedy="look which name is right; then correct the plan, or the name in the fabric", source=OWN)
    ETHERNET_SLOW = FaultKind("a network interface negotiated a lower speed than it supports", "environment")
    ETHERNET_DOWN = FaultKind("an Ethernet interface had a carrier and has none now", "environment")
    # GPUDirect RDMA
    PEER_MEMORY = FaultKind("the peer memory module is missing or not registered", "software",
        about=("host", "peer memory module"),
        remedy="build the driver's modules again beside the RDMA stack that is installed (MLNX_OFED or DOCA first, then"
        " the NVIDIA driver: dkms status), then modprobe nvidia_peermem",
        source="https://docs.nvidia.com/cuda/gpudirect-rdma")
    VERBS = FaultKind("verbs devices cannot be opened", "software", about=("host", "verbs device nodes"),
        remedy="set mode 0666 on /dev/infiniband/uverbs* with a udev rule (rdma-core has one)", source="rdma-core")
    MEMLOCK = FaultKind("the limit of locked memory is too low for RDMA", "setting", about=("host", "memlock limit"),
        remedy="set memlock to unlimited in /etc/security/limits.d, LimitMEMLOCK=infinity in the units that start jobs,"
        " and --ulimit memlock=-1 for containers", source="limits.conf(5), systemd.exec(5), docker run")
    BAR1_FULL = FaultKind("BAR1 has too little free space", "program", steps=("stop-jobs",), source=OWN)
    ACS = FaultKind("ACS is not set as peer-to-peer traffic needs it", "setting")
    ATS = FaultKind("an adapter translates addresses (ATS) where GPUs reach it without", "setting",
        steps=("change-setting", "reboot"), source="https://github.com/linux-rdma/rdma-core kernel-boot/rdma_topo;"
        " NVIDIA MFT user manual: mlxconfig")
    IOMMU = FaultKind("an IOMMU translates the DMA of GPUs or HCAs", "setting", disturbs="host")
    IOMMU_BLOCKED = FaultKind("an IOMMU blocked an access or interrupt that no driver set up",
        "software", warns="watch", steps=("inspect",), source=OWN)
    IOMMU_UNANSWERED = FaultKind(
        "a device, or an IOMMU itself, did not answer in time that an address is no longer used", "hardware",
        steps=("inspect", "reboot", "contact-vendor"),
        remedy="look in the kernel log for an Xid, a fatal error of an HCA or PCIe errors at that time; tasks of its"
        " driver may hang with it (ps -eo pid,stat,wchan:32,comm)",
        source="Linux drivers/iommu: arm/arm-smmu-v3, intel/dmar.c, amd/iommu.c")
    READ_REQUEST = FaultKind("MaxReadReq of an HCA is small", "setting", warns="next-maintenance",
        fails="next-maintenance", disturbs="host")
    MAX_PAYLOAD = FaultKind("MaxPayload differs along the path", "setting", disturbs="host")
