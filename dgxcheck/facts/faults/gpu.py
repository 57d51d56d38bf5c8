"""Faults of the driver and of GPUs."""

from __future__ import annotations

from dgxcheck.facts.faults.kind import (
    DEBUG,
    FIELD_DIAGNOSTIC,
    FM,
    LINK_STEPS,
    MEMORY,
    NVML,
    OWN,
    PAGES,
    README,
    RESET_STEPS,
    RMA,
    RMA_STEPS,
    SMI,
    XIDS,
    FaultKind,
)

_OUTSIDE = (
    "run nvidia-smi on the host itself: if it works there and not in a container, restart the container (systemctl"
    " daemon-reload removes its access to /dev/nvidia*)"
)


class Gpu:
    """The first of those, in the order of the manual page."""

    # fmt: off
    # the driver and its library
    LIBRARY_MISSING = FaultKind("libnvidia-ml.so.1 is not installed or not found", "software",
        steps=("change-setting",),
        remedy="of a program in a container see first whether that was given the driver (--gpus all, runtime class"
        " nvidia, the driver root of a device plugin); on the host run ldconfig, then install the driver's libraries in"
        " the version that /proc/driver/nvidia/version shows", source="ldconfig(8); NVIDIA driver README")
    LIBRARY_BROKEN = FaultKind("libnvidia-ml.so.1 is there and cannot be loaded", "software", steps=("change-setting",),
        remedy="check LD_LIBRARY_PATH and ldconfig -p for another libnvidia-ml.so.1; reinstall the driver's libraries"
        " in the version that /proc/driver/nvidia/version shows", source="ldconfig(8); NVIDIA driver README")
    MODULE_REFUSED = FaultKind("the kernel refused to load a module of the NVIDIA driver", "software",
        steps=("change-setting", "load-module", "reboot"),
        remedy="load the modules that it depends on (modprobe nvidia resolves them, insmod does not); if symbols are"
        " still unknown, build the modules again for the running kernel (dkms status)", source=README)
    MODULE_UNSIGNED = FaultKind(
        "the kernel refused the signature of a module of the NVIDIA driver (Secure Boot, lockdown)", "software",
        steps=("change-setting", "load-module", "reboot"),
        remedy="enrol the key that signed the module (mokutil --import KEY.der, then reboot and confirm it at the"
        " console), or install the modules that the distribution signs; switching Secure Boot off is the site's"
        " decision", source=f"{README}; mokutil(1)")
    MODULE_NOT_BUILT = FaultKind(
        "a module of the NVIDIA driver is not there for the running kernel, or was built for another one", "software",
        steps=("change-setting", "load-module", "reboot"),
        remedy="build the modules for the running kernel (dkms status, dkms autoinstall) or install the package that"
        " belongs to it, with its headers; then load them (modprobe nvidia)", source=f"{README}; dkms(8)")
    ADD_ON_MODULE = FaultKind(
        "the kernel did not load a module that is built beside the driver: nvidia_fs or gdrdrv", "software",
        about=("host", "add-on modules"), steps=("change-setting",),
        remedy="build it again beside the loaded driver and kernel (dkms status), then load it; where the kernel speaks"
        " of GPL-only symbols it needs the open kernel modules of the driver (modinfo -F license nvidia)",
        source="https://github.com/NVIDIA/gds-nvidia-fs, https://github.com/NVIDIA/gdrcopy")
    GPU_REFUSED = FaultKind(
        "the driver does not take a GPU: it does not support it, lacks its firmware, or another driver holds it",
        "software", steps=("change-setting", "reboot"), source=README)
    GPU_UNRECOGNISED = FaultKind(
        "the driver does not support a GPU, by its own words, of a model that this release supports, or cannot"
        " identify its chip", "hardware",
        steps=("inspect", "power-cycle", "contact-vendor"),
        remedy="in a virtual machine see first whether it is a vGPU, which needs the guest driver of the host's vGPU"
        " software, or in confidential computing, whose mode the host sets (with NVSwitches of all GPUs at once); on"
        " bare metal see whether the other GPUs of its model start", source=README)
    START_MEMORY = FaultKind("the host had no memory left for the start of a GPU", "program",
        steps=("inspect", "load-module", "reboot"),
        remedy="look at the free memory of the host (free -m; /proc/buddyinfo, for it may be in pieces) and which"
        " programs hold it", source="NVIDIA open-gpu-kernel-modules issue 892")
    DRIVER_NOT_LOADED = FaultKind("NVIDIA GPUs are present and no NVIDIA kernel module is loaded",
        "software", steps=("load-module", "reboot"),
        remedy="check dmesg for the reason; known ones are a module that is not built for this kernel (dkms status),"
        " Secure Boot, module_blacklist= in /proc/cmdline or /etc/modprobe.d, and no such device: lspci -nnk -d 10de:"
        " shows nouveau or vfio-pci at the GPUs, or the NVRM lines miss BARs or support of them; run modprobe nvidia"
        " once it is fixed, or where there is none",
        source="modprobe(8); NVIDIA driver README")
    DRIVER_FAILED = FaultKind("NVML cannot be initialised for another reason", "software",
        steps=("inspect", "load-module", "reboot"),
        remedy=f"{_OUTSIDE}; else read the NVRM lines of the kernel log",
        source="https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/latest/troubleshooting.html")
    DRIVER_UNRESPONSIVE = FaultKind("a driver call hung or ended the process that made it",
        "software", steps=("reboot", "power-cycle"), source=DEBUG)
    DRIVER_MISMATCH = FaultKind("driver library and loaded kernel module are of different versions",
        "software", steps=("inspect", "load-module", "reboot"),
        remedy="compare the versions of driver, its library and CUDA (cat /proc/driver/nvidia/version, modinfo -F"
        " version nvidia), in containers those inside too; then reload the driver or update the older one",
        source="modprobe(8); NVIDIA driver README")
    CLIENT_MISMATCH = FaultKind("the driver refused programs that use another version of its library", "software",
        remedy="restart these programs; in containers use the library that the container toolkit mounts, not the"
        " image's", source=README)
    CUDA_TOO_NEW = FaultKind(
        "a program uses a CUDA that the driver is too old for, or cuda-compat on a GPU without it", "program",
        about=("host", "CUDA of programs"), steps=("inspect",),
        remedy="compare the program's CUDA with that in the head of nvidia-smi; take a build or image of an older CUDA,"
        " or install a newer driver once the host is drained; cuda-compat inside the image spans major versions on"
        " data center GPUs only: elsewhere take it out of LD_LIBRARY_PATH",
        source="https://docs.nvidia.com/deploy/cuda-compatibility/index.html")
    GPU_BUSY = FaultKind("a program was refused a GPU as busy or unavailable", "program",
        about=("host", "programs"), warns="watch", steps=("inspect",),
        remedy="see nvidia-smi -q: in exclusive compute mode the program that holds the GPU is listed; with MIG mode on"
        " it needs an instance; with GPU Recovery Action other than None the GPU takes no work until then",
        source="CUDA driver API, CUresult: CUDA_ERROR_DEVICE_UNAVAILABLE")
    NOUVEAU = FaultKind("a driver of the kernel (nouveau, nova) is bound to an NVIDIA GPU", "software",
        steps=("change-setting", "reboot"),
        remedy="see with lspci -k -d 10de: what it is bound to; deny it in /etc/modprobe.d (blacklist nouveau), rebuild"
        " the initramfs and reboot", source=README)
    DRIVER_UNBOUND = FaultKind("no driver is bound to a GPU, HCA or NVMe disk", "software",
        steps=("load-module", "reboot"), source="Linux Documentation/ABI/testing/sysfs-bus-pci: bind, driver_override")
    DRIVER_OTHER = FaultKind(
        "a GPU, HCA or NVSwitch is set aside by another driver than most of its model have", "setting",
        warns="next-maintenance", steps=("change-setting",),
        source="Linux Documentation/ABI/testing/sysfs-bus-pci: driver_override; driverctl(8)")
    MODULE_NOT_LOADED = FaultKind(
        "devices lack their driver or their RDMA device because its kernel module is not loaded", "software",
        warns="now", steps=("load-module",), source="modprobe(8)")
    PERSISTENCE_OFF = FaultKind("persistence mode is off", "setting", about=("gpu", "persistence mode"))
    PERSISTENCE_UNSET = FaultKind(
        "persistence mode is off on workstation boards, which is their default", "setting", warns="next-maintenance",
        fails="next-maintenance")
    DEVICE_NODE = FaultKind("a /dev/nvidia* node is missing or cannot be opened", "software")
    FABRIC_MANAGER_VERSION = FaultKind(
        "fabric manager is of another version than the driver, which refuses it", "software",
        about=("fabric-manager", ""), steps=("change-setting", "restart-service", "reboot"),
        remedy="install the fabric manager of the driver's own version (cat /proc/driver/nvidia/version), and pin both"
        " packages to it", source=FM)
    FABRIC_MANAGER_DOWN = FaultKind(
        "the NVSwitch fabric is not initialised: fabric manager not running", "software", about=("fabric-manager", ""),
        steps=("inspect", "restart-service", "reboot"),
        remedy="read in its journal why it does not run; its version must be the driver's own", source=FM)
    FABRIC_MANAGER_ERROR = FaultKind("fabric manager logged an error that names no device",
        "software", about=("fabric-manager", ""),
        remedy="read the lines around it in /var/log/fabricmanager.log, and the kernel log of the same time (SXid)",
        source=FM)
    UMAD_MISSING = FaultKind(
        "the subnet manager of NVLink reaches no device, because the module ib_umad is not loaded", "software",
        about=("fabric-manager", ""), steps=("load-module", "restart-service", "reboot"),
        remedy="modprobe ib_umad, and name it in /etc/modules-load.d; then systemctl start nvidia-fabricmanager",
        source=FM)
    FABRIC_FAILED = FaultKind("a GPU failed to register with the NVSwitch fabric", "hardware",
        about=("gpu", "fabric"), steps=("inspect", "reset-gpu", "restart-service", "reboot"),
        remedy="read what Fabric Manager logged of this GPU (journalctl -u nvidia-fabricmanager; in a rack NMX-C's log)"
        " and the state of its NVLinks (nvidia-smi nvlink -s)", source=FM)
    NOT_READY = FaultKind("CUDA is not ready on this machine, so that nothing could be measured", "software",
        remedy="check whether CUDA_VISIBLE_DEVICES or the container hides the GPUs, and whether nvidia-smi lists"
        " them; else read the kernel log", source=OWN)
    # presence and identity of devices
    GPU_LOST = FaultKind("a GPU stopped responding or fell off the bus", "hardware", about=("gpu", ""))
    GPU_UNREADABLE = FaultKind(
        "the driver cannot open a GPU that it lists, or reads neither its state nor temperature nor power, with an"
        " unknown error each time", "hardware",
        about=("gpu", ""), steps=("inspect", *RESET_STEPS, *LINK_STEPS),
        remedy=f"read the NVRM lines and Xids of this GPU in the kernel log; {_OUTSIDE}", source=DEBUG)
    GPU_LOST_BEFORE = FaultKind(
        "a GPU fell off the bus in earlier boots, but not for many boots since", "hardware", warns="watch",
        steps=("watch", *LINK_STEPS), alone=True, source=OWN)
    GPU_NOT_STARTED = FaultKind("the driver could not initialise a GPU", "hardware", about=("gpu", ""))
    GPU_UNPOWERED = FaultKind("the driver reports that a GPU's auxiliary power is not connected",
        "hardware", steps=("inspect", *LINK_STEPS), source=XIDS)
    GPU_STARTED_LATE = FaultKind("the driver initialised a GPU only after a failed attempt",
        "hardware", warns="watch", steps=("watch", *LINK_STEPS), alone=True, source=OWN)
    GPU_MISSING = FaultKind("fewer GPUs than the reference machine has", "hardware")
    MEMORY_HELD = FaultKind("memory of an idle GPU is in use and no process is known to hold it",
        "program", steps=("inspect", "reset-gpu", "reboot"),
        remedy="run dgxcheck again after a minute, for a program that ends frees much memory slowly; then look who has"
        " this GPU open (fuser -v /dev/nvidiaN, N its minor number in nvidia-smi -q; also in containers). Leave"
        " NVIDIA's services and jobs on other GPUs alone, which may have it open too; ask the owner of the rest to"
        " end it", source="fuser(1); https://docs.nvidia.com/deploy/gpu-debug-guidelines/index.html")
    WRONG_MODEL = FaultKind(
        "a GPU of another model than the reference machine's, or an HCA whose model differs from the others'",
        "hardware", warns="next-maintenance", fails="next-maintenance")
    DISAGREEMENT = FaultKind("NVML and sysfs report different PCI paths", "software")
    CONTRADICTION = FaultKind("readings that cannot be true together", "software")
    UNEQUAL = FaultKind("a version, size, limit or setting differs from the other devices of its kind",
        "setting", warns="next-maintenance", fails="next-maintenance")
    DRIFT = FaultKind("differs from the baseline recording", "setting")
    VERSION = FaultKind("a driver, firmware or VBIOS version differs from the one that the site pins",
        "software", warns="next-maintenance", fails="next-maintenance")
    MISPLACED = FaultKind("a device is in another place than in the reference machine", "hardware",
        warns="next-maintenance", fails="next-maintenance")
    # a GPU's own parts
    RESET_REQUIRED = FaultKind("the GPU needs a reset", "hardware", about=("gpu", ""))
    REBOOT_REQUIRED = FaultKind("the GPU needs a reboot of the system or node", "hardware",
        about=("gpu", ""), steps=("reboot", "power-cycle", *RMA_STEPS), source=NVML)
    COMPUTE_PROHIBITED = FaultKind("compute mode is PROHIBITED", "setting")
    VGPU_UNLICENSED = FaultKind("a vGPU has no licence, so that its driver slows it down", "setting",
        about=("host", "vGPU licence"), steps=("inspect",),
        remedy="in the guest read journalctl -u nvidia-gridd; check ServerAddress and FeatureType in"
        " /etc/nvidia/gridd.conf or the token in /etc/nvidia/ClientConfigToken, and that the licence server is reached,"
        " then systemctl restart nvidia-gridd, which ends no jobs",
        source="https://docs.nvidia.com/vgpu/latest/grid-licensing-user-guide")
    GPU_EXCLUDED = FaultKind("the driver was loaded to leave a GPU out, which no program can use", "setting",
        about=("gpu", ""), steps=("inspect",),
        remedy="look for ExcludedGpus, and what is noted beside it, in /etc/modprobe.d and /proc/cmdline: a GPU that"
        " waits for repair may be left out on purpose; where it is not, remove it there, and load the driver again"
        " once no job runs", source="NVreg_ExcludedGpus in nv-reg.h of NVIDIA/open-gpu-kernel-modules")
    GPU_IN_USE = FaultKind(
        "a GPU was not reset, or its MIG mode not changed, because programs use it", "program", about=("gpu", ""),
        steps=("inspect", "reset-gpu", "reboot"),
        remedy="fuser -v /dev/nvidia* lists what holds it: jobs, nvidia-persistenced, DCGM, an X server; the module"
        " nvidia_drm holds it too", source=f"{SMI}; https://github.com/NVIDIA/mig-parted/issues/181")
    MIG_PENDING = FaultKind("a MIG mode change waits for a GPU reset", "setting", fails="next-drain")
    MIG_EMPTY = FaultKind("MIG mode is on without a GPU instance, so that CUDA finds no device", "setting",
        steps=("inspect",),
        remedy="nvidia-smi mig -lgi lists the instances, which do not survive a reboot or reset; where a MIG manager or"
        " a start-up service creates them, read its log; where nothing does, and the whole GPU is wanted, turn MIG off"
        " while no job uses it: nvidia-smi -i BDF -mig 0", source="NVIDIA MIG user guide: persistence of instances")
    C2C_DOWN = FaultKind("NVLink-C2C between a GPU and its CPU is not in use", "hardware",
        steps=("inspect", "reboot", "field-diagnostic", "contact-vendor"),
        remedy="nvidia-smi c2c -s shows which of its links are off; look for Xids and NVRM lines of this GPU in the"
        " kernel log", source=f"{OWN}; nvidia-smi(1): c2c")
    MEMORY_NODE = FaultKind("the memory of a GPU on Grace is not the NUMA node that it should be",
        "software", steps=("inspect", "reboot", "contact-vendor"), source=OWN)
    INFOROM = FaultKind("the InfoROM is corrupted or unreadable", "hardware", about=("gpu", "InfoROM"),
        warns="next-maintenance", fails="next-maintenance")
    ECC_OFF = FaultKind("ECC is disabled", "setting", about=("gpu", "ECC mode"))
    ECC_PENDING = FaultKind("an ECC mode change waits for a GPU reset", "setting",
        about=("gpu", "ECC mode"), fails="next-drain")
    ECC_UNCORRECTED = FaultKind("uncorrected memory errors", "hardware", about=("gpu", "memory"))
    ECC_CORRECTED = FaultKind("corrected memory errors above the threshold rate", "hardware",
        about=("gpu", "memory"), warns="watch", steps=("watch", *RMA_STEPS), alone=True, source=OWN)
    ECC_FLOOD = FaultKind("very many corrected memory errors", "hardware", fails="next-drain",
        steps=RMA_STEPS, source=RMA)
    SRAM_EXCEEDED = FaultKind("uncorrected SRAM errors at NVIDIA's threshold for an RMA", "hardware",
        about=("gpu", "memory"), steps=RMA_STEPS, remedy=FIELD_DIAGNOSTIC, source=MEMORY)
    MEMORY_FAULTY = FaultKind(
        "a diagnostic read other data from the memory of a GPU than it had written there", "hardware",
        about=("gpu", "memory"), steps=RMA_STEPS, remedy=FIELD_DIAGNOSTIC,
        source="https://github.com/NVIDIA/DCGM/blob/master/dcgmlib/dcgm_errors.h")
    RETIREMENT_PENDING = FaultKind("a page retirement waits for a GPU reset", "hardware",
        about=("gpu", "memory"), fails="next-drain", steps=RESET_STEPS, alone=True, source=PAGES)
    PAGES_MANY = FaultKind("pages retired for double-bit errors, or many in all, but not at the limit",
        "hardware", about=("gpu", "memory"), warns="watch", steps=("watch", *RMA_STEPS), alone=True, source=PAGES)
    PAGES_GROWING = FaultKind(
        "many pages retired for double-bit errors, several of them within a week", "hardware", steps=RMA_STEPS,
        remedy=FIELD_DIAGNOSTIC,
        source=PAGES)
    PAGES_EXHAUSTED = FaultKind("retired pages at or near the limit at which the board is replaced",
        "hardware", about=("gpu", "memory"), steps=RMA_STEPS, remedy=FIELD_DIAGNOSTIC,
        source=PAGES)
    MEMORY_UNREPAIRABLE = FaultKind("the driver reports memory that cannot be repaired",
        "hardware", about=("gpu", "memory"), steps=RMA_STEPS,
        remedy=FIELD_DIAGNOSTIC,
        source=NVML)
    REPAIR_PENDING = FaultKind("a repair of a memory channel or TPC waits for a GPU reset",
        "hardware", fails="next-drain", steps=RESET_STEPS, alone=True, source=MEMORY)
    REMAP_PENDING = FaultKind("a row remapping waits for a GPU reset", "hardware",
        about=("gpu", "memory"), fails="next-drain", steps=RESET_STEPS, alone=True, source=MEMORY)
    REMAP_DUE = FaultKind("a row remapping waits for a GPU reset, and the bad row stays in use until then",
        "hardware", steps=RESET_STEPS, alone=True, source=MEMORY)
    REMAP_FAILED = FaultKind("a row remapping failed", "hardware", about=("gpu", "memory"), steps=RMA_STEPS,
        remedy=FIELD_DIAGNOSTIC,
        source=MEMORY)
    RETIREMENT_FAILED = FaultKind(
        "the driver logged that a page retirement failed", "hardware", about=("gpu", "memory"), steps=RMA_STEPS,
        source=PAGES)
    ROWS_EXHAUSTED = FaultKind("remapped rows at the limit at which the board is replaced",
        "hardware", about=("gpu", "memory"), steps=RMA_STEPS, remedy=FIELD_DIAGNOSTIC, source=MEMORY)
    ROWS_LOW = FaultKind("a memory bank has few or no spare rows left", "hardware", warns="watch",
        steps=("watch", *RMA_STEPS), alone=True, source=MEMORY)
    RECOVERY_REQUIRED = FaultKind("the driver requires another recovery action for the GPU",
        "hardware", about=("gpu", ""), steps=("inspect", *RESET_STEPS), source=NVML)
    IMEX_RECOVERY = FaultKind("the driver asks to recover the IMEX domain of the rack", "software",
        fails="next-drain", steps=("restart-service", "contact-vendor"), source=NVML)
    IMEX_DOWN = FaultKind("nvidia-imex is enabled and does not run", "software", about=("host", "IMEX"),
        warns="next-maintenance", steps=("inspect",),
        remedy="journalctl -u nvidia-imex; compare its list of nodes with that of other nodes, which must be the same;"
        " systemctl start nvidia-imex, which ends no jobs on this node", source=OWN)
    IMEX_TWICE = FaultKind("a daemon of IMEX found the session of this node in use by another one",
        "software", about=("host", "IMEX"), warns="next-maintenance", steps=("inspect",),
        remedy="list the daemons of this node (pgrep -a nvidia-imex; systemctl status nvidia-imex; on Kubernetes the"
        " compute domain daemons): where the DRA driver runs them nvidia-imex.service is to be disabled, as jobs allow",
        source="https://docs.nvidia.com/datacenter/cloud-native/gpu-operator/latest/dra-intro-install.html")
    IMEX_NODES = FaultKind("nodes of an IMEX domain do not reach each other", "environment",
        about=("host", "IMEX"), warns="next-maintenance", steps=("inspect",),
        remedy="ask every node for nvidia-imex-ctl -N, and compare version, list of nodes and the network between them;"
        " jobs on one node are not concerned; under Kubernetes unused slots of a domain are never ready",
        source="https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/cmdservice.html")
    DRAIN_AND_RESET = FaultKind(
        "the driver asks to drain the GPU, which works on at reduced capacity, and then to reset it", "hardware",
        about=("gpu", ""), fails="next-drain", steps=(*RESET_STEPS, *RMA_STEPS), alone=True, source=SMI)
    DRAIN_REQUIRED = FaultKind("the driver asks to drain peer-to-peer traffic of the GPU", "hardware",
        fails="next-drain", steps=("inspect", *RESET_STEPS), alone=True, disturbs="jobs", source=SMI)
    MEMORY_SIZE = FaultKind("less memory than the model has", "hardware")
    OVERHEATING = FaultKind("temperature at or near the slowdown threshold", "environment", about=("gpu", "cooling"))
    HOTTER = FaultKind("much hotter than most other GPUs at similar power", "environment", fails="next-drain")
    HEAT_SINK = FaultKind("much hotter than every other GPU at similar power", "environment", fails="next-drain",
        disturbs="host",
        remedy="check this GPU's heat sink or cold plate once it is drained: contact, dust, flow; its siblings are"
        " cool, so what they share, as fans, inlet air and pump, is not the reason (PCIe card: clean it; SXM or"
        " liquid-cooled: the vendor does)", source=DEBUG)
    THERMAL_SLOWDOWN = FaultKind("clocks are held down by temperature", "environment", about=("gpu", "cooling"))
    POWER_BRAKE = FaultKind("clocks are held down by the external power brake", "environment",
        remedy="check power supplies, power cables and the power budget of chassis and rack", source=DEBUG)
    HARDWARE_SLOWDOWN = FaultKind("clocks are held down by hardware: temperature or power",
        "hardware", about=("gpu", "cooling"))
    POWER_CAPPED = FaultKind("the power limit is below the default", "setting")
    POWER_LIMITED = FaultKind("the default power limit is below that of the model", "setting", warns="next-maintenance")
    POWER_REACHED = FaultKind("a power limit that was not lowered holds clocks below those of other GPUs", "hardware",
        steps=("inspect", *RMA_STEPS), source=OWN)
    POWER_VIOLATION = FaultKind("clocks are held down by lack of power", "environment", about=("gpu", "power supply"))
    CLOCKS_STUCK = FaultKind("a fully used GPU keeps low clocks, without a reason of the driver",
        "hardware", about=("gpu", ""), steps=("inspect", *RESET_STEPS, "power-cycle", *RMA_STEPS), source=OWN)
    CLOCKS_LOWERED = FaultKind("application clocks are below the default", "setting")
    CLOCKS_LIMITED = FaultKind("the highest clock is below that of the model", "setting")
