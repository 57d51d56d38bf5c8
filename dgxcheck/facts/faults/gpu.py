"""Faults of GPUs."""

from __future__ import annotations

from dgxcheck.facts.faults.kind import (
    DEBUG,
    FIELD_DIAGNOSTIC,
    LINK_STEPS,
    MEMORY,
    NVML,
    OUTSIDE,
    OWN,
    PAGES,
    RESET_STEPS,
    RMA,
    RMA_STEPS,
    SMI,
    XIDS,
    FaultKind,
)


class Gpu:
    """In the order of the manual page."""

    # fmt: off
    # presence and identity of devices
    GPU_LOST = FaultKind("a GPU stopped responding or fell off the bus", "hardware", about=("gpu", ""))
    GPU_UNREADABLE = FaultKind(
        "the driver cannot open a GPU that it lists, or reads neither its state nor temperature nor power, with an"
        " unknown error each time", "hardware",
        about=("gpu", ""), steps=("inspect", *RESET_STEPS, *LINK_STEPS),
        remedy=f"read the NVRM lines and Xids of this GPU in the kernel log; {OUTSIDE}", source=DEBUG)
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
        remedy="check this GPU's heat sink or cold plate once it is drained: contact, dust, flow; its siblings at"
        " similar power are cool, so what they share, as fans, inlet air and pump, is not the reason (PCIe card: clean"
        " it; SXM or liquid-cooled: the vendor does)", source=DEBUG)
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
