"""Faults of the host, and what its kernel log, measurements and other tools report."""

from __future__ import annotations

from dgxcheck.facts.faults.kind import (
    LINK_STEPS,
    NCCL,
    OWN,
    RESET_STEPS,
    RMA_STEPS,
    SOLDERED,
    XIDS,
    FaultKind,
)


class Host:
    """In the order of the manual page."""

    # fmt: off
    # the host
    CPU_MISSING = FaultKind("fewer CPUs or cores than the reference machine has", "hardware")
    CPU_OFFLINE = FaultKind("CPUs are offline", "setting", about=("host", "CPUs"),
        steps=("change-setting", "reboot"), source=OWN)
    COMMAND_LINE = FaultKind("the kernel command line switches off what a machine with GPUs needs", "setting")
    NUMA_TABLES = FaultKind("the firmware's NUMA tables contradict sockets, memory or PCI tree", "setting",
        disturbs="host", about=("host", "NUMA setting"), source="numa= in the kernel's parameters; ACPI's SRAT",
        remedy="check NUMA settings in the firmware (node interleaving, NPS, SNC); update it; look for numa= on the"
        " kernel command line")
    NUMA_MODE = FaultKind("NUMA nodes divide the machine differently than in the reference machine",
        "setting", disturbs="host")
    NODE_EMPTY = FaultKind("a NUMA node with CPUs has no memory", "setting")
    CLOCK_SOURCE = FaultKind("the kernel does not use the CPU's time stamp counter as its clock", "setting")
    CPU_CLOCK = FaultKind("a setting keeps CPUs below their highest clock", "setting")
    MEMORY_MISSING = FaultKind("less memory than the reference machine has", "hardware",
        about=("host", "memory"), soldered=SOLDERED,
        remedy="look at that channel's slots (the BMC's event log), then reseat or replace the DIMM",
        source="dmidecode(8); the board's manual")
    DIMM_SPEED = FaultKind("DIMMs of one machine run at different speeds", "setting", about=("host", "memory"),
        remedy="compare the DIMMs and their slots with the board's manual, and the memory speed in the firmware"
        " setup: dmidecode -t memory", source="dmidecode(8); the board's manual")
    DIMM_ERRORS = FaultKind("errors of host memory (EDAC)", "hardware", about=("host", "memory"), soldered=SOLDERED)
    MEMORY_ECC = FaultKind("errors of the host's memory are not corrected: ECC is off", "setting",
        about=("host", "memory ECC"), remedy="enable ECC in the firmware setup; if it is, compare the DIMMs with the"
        " board's manual, for one without ECC turns it off for its controller: dmidecode -t 16,17 (Error Correction"
        " Type, Total Width)", source="Linux drivers/edac; dmidecode(8)")
    MACHINE_CHECK = FaultKind("errors of CPUs (machine checks)", "hardware", about=("host", "CPUs"))
    POWER_SUPPLY = FaultKind("a power supply of the machine failed or lost its input", "hardware",
        about=("host", "power supply"))
    FAN = FaultKind("a fan of the machine failed or turns too slowly", "hardware", about=("host", "cooling"))
    LEAK = FaultKind("a detector of the machine reports that coolant leaks", "hardware", about=("host", "cooling"),
        warns="now", steps=("inspect", "contact-vendor"),
        remedy="read on the BMC which detector it is and whether it still reports it (Redfish: LeakDetectors below"
        " ThermalSubsystem/LeakDetection of its chassis), and look for coolant at the tray, its hoses and the manifold:"
        " where there is any, the machine must not stay under power, nor be powered on before it is repaired",
        source="DMTF Redfish: schema LeakDetector; https://github.com/dsx-ai-factory/infra-controller/pull/5521")
    BATTERY = FaultKind("a battery of the machine is low or failed", "hardware", about=("host", "batteries"),
        steps=("inspect",), remedy="see which one it is (ipmitool sdr elist); replace it at the next maintenance:"
        " without the coin cell of its board the machine forgets its clock and firmware settings once it has no power,"
        " and a RAID controller no longer caches writes, or loses them", source="NVIDIA DGX H100/H200 service manual")
    BMC_SILENT = FaultKind("the machine's BMC does not answer its host", "environment", about=("host", "BMC"),
        remedy="ask it once more (ipmitool mc info), then over its own network (its web page, Redfish, ipmitool -I"
        " lanplus -H ADDRESS -U USER -a mc info): if it answers, restart it alone (mc reset cold instead of mc info),"
        " which leaves the host running; else unplug all power cords for a minute at the next maintenance",
        source="ipmitool(1); Linux Documentation/driver-api/ipmi.rst")
    CPU_THROTTLED = FaultKind("CPU clocks are held down by temperature", "environment")
    DRIVER_STUCK = FaultKind("the kernel logged tasks that hung in the NVIDIA driver", "software",
        steps=("inspect", "reboot", "power-cycle"),
        remedy="nvidia-bug-report.sh --safe-mode --extra-system-data; look for an Xid at that time and try nvidia-smi:"
        " where it hangs too, only a reboot helps", source=OWN)
    MODULE_STUCK = FaultKind("a kernel module has not ended loading or unloading", "software",
        steps=("inspect", "reboot"), source="Linux Documentation/ABI/stable/sysfs-module: initstate")
    KERNEL_PANIC = FaultKind("the kernel panicked or hit a bug of its own (oops)", "software",
        steps=("inspect", "reboot", "contact-vendor"), source=OWN)
    TASKS_HUNG = FaultKind("the kernel logged tasks or CPUs that hung", "software", warns="watch")
    OUT_OF_MEMORY = FaultKind("the kernel killed processes because memory ran out", "program", warns="watch")
    SERVICE_KILLED = FaultKind(
        "a service that GPUs, fabric or scheduler need crashed, or was killed because memory ran out", "software",
        warns="now", source="Linux mm/oom_kill.c; systemctl(1)")
    OUT_OF_FILES = FaultKind("the limit of open files of the whole host was reached", "program")
    NETWORK_TABLE_FULL = FaultKind("a table of the kernel's network was full: connections fail", "setting",
        source="Linux Documentation/networking/ip-sysctl.rst, nf_conntrack-sysctl.rst")
    INTERRUPT_OFF = FaultKind("the kernel switched off an interrupt that no driver handled", "software",
        about=("host", "interrupts"), steps=("inspect", "reboot"),
        remedy="/proc/interrupts names the drivers that share this line: their devices react late or not at all until"
        " the next reboot; see why a device uses no MSI there (pci=nomsi, NVreg_EnableMSI=0, its firmware) and update"
        " its driver", source="Linux kernel/irq/spurious.c")
    BOUNCE_BUFFERS = FaultKind("transfers of a device found no bounce buffer (swiotlb)", "setting",
        about=("host", "bounce buffers"),
        remedy="in a confidential guest give the kernel more of them with the next boot (swiotlb=NUMBER of 2 KiB each),"
        " as the deployment guide of its GPUs says; on bare metal look for swiotlb=force and for an IOMMU that is off,"
        " for devices there reach all memory without them", source="Linux kernel/dma/swiotlb.c,"
        " Documentation/core-api/swiotlb.rst")
    PROGRAM_CRASHED = FaultKind("a program failed by itself, or crashed in an NVIDIA library",
        "program", about=("host", "programs"), warns="watch",
        remedy="look for an Xid at that time; look for a message of NCCL; check the program (compute-sanitizer,"
        " CUDA_LAUNCH_BLOCKING=1), and that it was built for these GPUs and its libraries fit the driver; suspect a GPU"
        " only if several programs fail on it, and then by its Xids", source="compute-sanitizer manual")
    ARRAY_FAILED = FaultKind("an array is inactive: its data cannot be read", "hardware",
        steps=("inspect", "reseat", "replace"), source="md(4), mdadm(8)")
    ARRAY_READ_ONLY = FaultKind("an array is read-only: writes to it fail", "setting",
        about=("host", "disks"), warns="now", steps=("change-setting",), alone=True,
        remedy="see in the kernel log and in mdadm --detail why it is so; if none of its disks has errors, mdadm"
        " --readwrite makes it writable", source="md(4), mdadm(8); Linux Documentation/admin-guide/md.rst")
    DISK_ERRORS = FaultKind("the kernel logged I/O errors of a disk", "hardware",
        steps=("inspect", "replace"), source="smartctl(8), nvme-smart-log(1)")
    RAID_ALARM = FaultKind("a RAID controller logged an alarm of its volumes or drives", "hardware",
        steps=("inspect",), alone=True,
        remedy="read which volume and which drive it means (storcli64 /c0/vall show, /c0/eall/sall show, /c0 show"
        " events) and replace only a drive that it calls failed, while the others of its volume are online; clear no"
        " configuration", source="Broadcom StorCLI reference manual")
    FILE_SYSTEM = FaultKind("the kernel logged errors of a file system of the host", "hardware",
        about=("host", "disks"), steps=("inspect",), alone=True, source=OWN)
    FILE_SYSTEM_READ_ONLY = FaultKind(
        "a file system of the host became read-only or was shut down after errors", "hardware",
        about=("host", "disks"), steps=("inspect", "reboot"), alone=True,
        source="Linux Documentation/filesystems/ext4: errors=remount-ro; e2fsck(8)")
    FILE_SERVER = FaultKind("the kernel logged that a file server does not respond", "environment")
    UNPLUGGED = FaultKind(
        "a PCIe slot lost its device while the system was running, or a device no longer responds", "hardware",
        steps=("inspect", "power-cycle", "reseat", "contact-vendor"), alone=True, source=OWN)
    DISK = FaultKind("a disk is missing or failing, or an array is degraded", "hardware", about=("host", "disks"))
    DISK_FULL = FaultKind("a file system that programs and services write to is full", "program",
        about=("host", "disks"), warns="now", steps=("inspect",),
        remedy="see df -i as well, for there may be space and no inode; find what fills it (du -xh --max-depth=1 as"
        " root) and ask its owner to make room: containers, logs and checkpoints fail until then",
        source="df(1), du(1)")
    CLOCK_UNSYNCED = FaultKind("the clock of the host is not synchronised with a time server",
        "setting", about=("host", "time synchronisation"), warns="next-maintenance", steps=("inspect",),
        remedy="chronyc sources -v (timedatectl timesync-status) shows whether time servers are reached, and the"
        " journal of that service why not; until then times in logs cannot be compared with other hosts, and munge"
        " of Slurm refuses this one", source="chronyc(1), timedatectl(1), munged(8)")
    NUMA_BALANCING = FaultKind("the kernel moves pages that GPUs use between NUMA nodes", "setting")
    GOVERNOR = FaultKind("the CPU frequency governor lowers the clock", "setting")
    # the kernel log
    DRIVER_ERROR = FaultKind(
        "the driver of GPUs or HCAs logged an error that dgxcheck does not know", "software", warns="watch",
        steps=("inspect", "contact-vendor"), alone=True,
        remedy="read the lines around it (dmesg -T), look whether a program failed at that time, and search its words"
        " in the driver's release notes and issues; if it recurs or programs fail, send them with the file of"
        " nvidia-bug-report.sh (of an HCA sysinfo-snapshot) to the vendor", source=OWN)
    DRIVER_REBOOT = FaultKind("the NVIDIA driver asks for a reboot of the host", "software",
        steps=("reboot", "power-cycle", "contact-vendor"),
        remedy="drain, then reboot: programs that use managed memory fail until then",
        source="NVIDIA open-gpu-kernel-modules, nv_gpu_ops.c: nvGpuOpsReportFatalError")
    CONFIDENTIAL_COMPUTING = FaultKind(
        "the NVIDIA driver takes no more work after a fatal error in confidential computing mode", "software",
        steps=("reboot", "contact-vendor"),
        remedy="restart the virtual machine of this driver and attest its GPUs again before they are set ready: until"
        " the driver is loaded again it takes no work on any of them",
        source="NVIDIA open-gpu-kernel-modules, conf_compute.c: confComputeSetErrorState_KERNEL")
    XID = FaultKind("the driver logged an Xid error that asks for a reset of the GPU", "hardware", about=("gpu", ""))
    XID_APPLICATION = FaultKind("the driver logged an Xid error that a program causes by itself",
        "program", steps=("check-program",), alone=True, source=XIDS)
    XID_PROGRAMS = FaultKind(
        "the driver logged application Xid errors of several programs on one GPU alone", "hardware", steps=RMA_STEPS,
        alone=True, source=XIDS)
    XID_CONTAINED = FaultKind("the driver logged a memory error (Xid) that stopped only one program",
        "hardware", about=("gpu", "memory"), fails="next-drain", steps=("restart-program", "reset-gpu", *RMA_STEPS),
        alone=True, source=XIDS)
    XID_PCIE = FaultKind("the driver logged an Xid error that points at the GPU's PCIe link", "hardware",
        about=("gpu", ""), steps=("inspect", *LINK_STEPS), alone=True, source=XIDS)
    XID_PEER = FaultKind("the driver logged an NVLink error (Xid) that the device at the other end caused",
        "hardware", steps=("inspect", "reset-gpu", "reboot", "contact-vendor"), alone=True, source=XIDS)
    XID_SIGNAL = FaultKind("the driver logged an NVLink error (Xid) that points at the link's signal",
        "hardware", steps=("reset-gpu", "reboot", "inspect", "contact-vendor"), alone=True, source=XIDS)
    XID_RATE = FaultKind("the driver logged an NVLink's bit errors (Xid), for which no reset is asked",
        "hardware", about=("gpu", ""), warns="next-drain", steps=("inspect", "contact-vendor"), alone=True, source=XIDS)
    XID_LINK_OFF = FaultKind("the driver logged an Xid of an NVLink that software or a user switched off", "software",
        steps=("inspect", *RESET_STEPS), alone=True, source=XIDS)
    XID_SOFTWARE = FaultKind(
        "the driver logged an Xid error that comes from driver, vGPU or guest software", "software",
        steps=("inspect", "contact-vendor"), alone=True, source=XIDS)
    XID_NOTICE = FaultKind("the driver logged an Xid error that asks for no action unless it comes back",
        "hardware", about=("gpu", ""), warns="watch", fails="watch", steps=("watch", "contact-vendor"), alone=True,
        source=XIDS)
    AER_LOGGED = FaultKind("the kernel logged PCIe errors", "hardware", steps=("inspect", *LINK_STEPS),
        alone=True, source="Linux Documentation/PCI/pcieaer-howto")
    # measurements
    SLOW = FaultKind("a measured figure is below the expected one", "hardware")
    WRONG_DATA = FaultKind("data did not arrive intact", "hardware")
    MEASUREMENT_FAILED = FaultKind("a measurement failed or hung", "hardware")
    BURN_IN = FaultKind("burn-in stopped or did not complete", "hardware")
    # what other tools report
    CONTAINER_RUNTIME = FaultKind("the container runtime cannot give containers GPUs", "software",
        about=("host", "container runtime"),
        remedy="install nvidia-container-toolkit, run nvidia-ctk runtime configure (CDI: nvidia-ctk cdi generate) and"
        " restart the container runtime; then check the output of nvidia-container-cli -k -d /dev/tty info",
        source="NVIDIA Container Toolkit documentation")
    CONTAINER_ERROR = FaultKind("NVIDIA's container runtime could not set up a container",
        "software", about=("host", "container runtime"), steps=("inspect",),
        remedy="read its text: it names the file, right or library that it lacks; nvidia-container-cli -k -d /dev/tty"
        " info on the host shows whether the driver is at fault; else compare what was upgraded last (its toolkit, the"
        " kernel, the driver), the rights of the container (cgroups, user namespaces, a root file system over the"
        " network), and whether nvidia-persistenced runs where its socket is meant",
        source="https://github.com/NVIDIA/libnvidia-container")
    GPUS_NOT_OFFERED = FaultKind("a scheduler has fewer GPUs of the host than it should have",
        "software", about=("host", "GPUs for the scheduler"), steps=("inspect",),
        remedy="on that host run dgxcheck health for a GPU that is lost, and compare nvidia-smi -L with what the"
        " scheduler expects (Slurm: slurmd -G, gres.conf; Kubernetes: the log of the pod nvidia-device-plugin,"
        " with DRA of nvidia-dra-driver-gpu)",
        source="Slurm, gres.conf(5); NVIDIA k8s-device-plugin, README")
    CONTAINER_DEVICES = FaultKind("a container may no longer use its GPUs", "software",
        about=("host", "container runtime"), disturbs="programs",
        remedy="restart the container: it lost access to /dev/nvidia*, which systemctl daemon-reload on the"
        " host causes if systemd manages cgroups; nothing is wrong with driver or GPUs if nvidia-smi works on the"
        " host. To prevent it there: nvidia-ctk system create-dev-char-symlinks --create-all",
        source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html:"
        " containers losing access to GPUs")
    TEST_FAILED = FaultKind("a diagnostic of another tool failed", "hardware", about=("host", "results of diagnostics"))
    TOOL_ERROR = FaultKind("a library or service logged an error that nothing else explains", "program",
        about=("host", "results of NCCL"),
        remedy="read the lines around it in the log, and the kernel log of the same time", source=OWN)
    SHARED_MEMORY = FaultKind("a program finds no room in /dev/shm", "setting",
        about=("host", "shared memory"), steps=("inspect",),
        remedy="df -h /dev/shm on the host or in the container of the job; a container is given more with --shm-size or"
        " --ipc=host, a pod with an emptyDir of medium Memory at /dev/shm", source=NCCL)
    PROGRAM_ERROR = FaultKind(
        "a library refused a call or a setting of a program; the machine is not at fault", "program",
        about=("host", "results of NCCL"), steps=("inspect",), alone=True,
        remedy="check the program, its ranks and its NCCL_ variables; run all_reduce_perf of nccl-tests on the same"
        " GPUs: if that works, the machine is not at fault", source=NCCL)
    COLLECTIVE_TIMEOUT = FaultKind("ranks of a program timed out waiting for another rank",
        "program", about=("host", "results of NCCL"),
        remedy="on the host of the rank that is missing or behind check for Xids, a lost GPU, ports that are down and"
        " a program that ended (dgxcheck health), and where that rank hangs (py-spy dump); then run all_reduce_perf"
        " over the same hosts", source=NCCL)
    NO_CONNECTION = FaultKind("a program could not open a TCP connection to another host",
        "environment", about=("host", "transfers to other hosts"),
        remedy="check that the program still runs at that address, then the interface that it chose"
        " (NCCL_SOCKET_IFNAME), routes and firewalls between the two hosts", source=NCCL)
    TRANSFER_FAILED = FaultKind("a program reports that a transfer to another host failed",
        "environment", about=("host", "transfers to other hosts"),
        remedy="look for the first error of all hosts in their logs: the others follow from it; in a test of two ends"
        " give both the same options", source=NCCL)
    TRANSFER_UNANSWERED = FaultKind("a transfer to another host got no answer", "environment",
        about=("host", "path to other hosts"),
        remedy="check at both ends the state of the ports (ibstat), their error counters (perfquery -x), cables and"
        " transceivers (mlxlink -m), then the switch ports between them; with RoCE also GID index, MTU and flow"
        " control; then measure the path with ib_write_bw", source="ibstat(8), perfquery(8); NVIDIA MFT user manual")
    RDMA_ACCESS = FaultKind("an HCA may not access the memory that a transfer uses", "setting",
        about=("host", "GPUDirect RDMA"),
        remedy="repeat the transfer with host memory: where that works, load nvidia-peermem at both ends, and look"
        " for ACS and an IOMMU in the way with dgxcheck health; else check the limit of locked memory",
        source="https://docs.nvidia.com/cuda/gpudirect-rdma")
    TCP_FALLBACK = FaultKind("NCCL moves data over TCP although the machine has HCAs", "setting",
        about=("host", "network of NCCL"),
        remedy="check the state of the HCAs' ports, NCCL_IB_DISABLE, NCCL_IB_HCA and NCCL_NET", source=NCCL)
    GDR_UNUSED = FaultKind("NCCL moves data to HCAs without GPUDirect RDMA", "setting",
        about=("host", "peer memory module"),
        remedy="load nvidia-peermem (or use a kernel with DMA-BUF) and start the job again; then compare"
        " NCCL_NET_GDR_LEVEL with the distance of GPUs and HCAs: dgxcheck topo",
        source="https://docs.nvidia.com/cuda/gpudirect-rdma")
    # dgxcheck itself
    CHECK_FAILED = FaultKind("a check failed with an internal error", "software")
