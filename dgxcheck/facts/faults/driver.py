"""Faults of the driver, its library and its services."""

from __future__ import annotations

from dgxcheck.facts.faults.kind import DEBUG, FM, OUTSIDE, OWN, README, FaultKind


class Driver:
    """In the order of the manual page."""

    # fmt: off
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
        remedy=f"{OUTSIDE}; else read the NVRM lines of the kernel log",
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
