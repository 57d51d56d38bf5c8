"""Which steps a cause asks for, from the least disruptive up: by kind and part of the component and by the faults.

The order for a GPU is NVIDIA's: reset, reboot, cold power cycle, field diagnostic, RMA. Nothing is replaced before a
field diagnostic (https://docs.nvidia.com/deploy/rma-process/index.html). Draining and stopping jobs is no step of these
lists: ``actions`` puts it before the first step that disturbs them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from dgxcheck.checks.engine.fault import DEVICE_ABSENT, DEVICE_DEAD, GPU_DEAD, Fault
from dgxcheck.components.component import FABRIC_MANAGER, PEER_TRAFFIC, Component, Kind
from dgxcheck.components.containment import NVSWITCHES
from dgxcheck.diagnosis.action import Step

Steps = tuple[Step, ...]
_TO_HARDWARE: Steps = ("reseat", "field-diagnostic", "replace")
_GPU: Steps = ("reset-gpu", "reboot", "power-cycle", *_TO_HARDWARE)
_LINK: Steps = ("power-cycle", *_TO_HARDWARE)
_ADAPTER: Steps = ("power-cycle", "reseat", "replace")
_LOST_NVSWITCH: Steps = ("reboot", "power-cycle", "field-diagnostic", "contact-vendor")
_MISSING: Steps = ("power-cycle", "reseat", "contact-vendor")
_MISSING_SWITCH: Steps = ("power-cycle", "contact-vendor")

OF_COMPONENT: Mapping[tuple[Kind, str], Steps] = {
    ("gpu", ""): _GPU,
    ("gpu", "NVLink"): _GPU,
    ("gpu", "memory"): ("reset-gpu", "reboot", "field-diagnostic", "replace"),
    ("gpu", "cooling"): ("inspect", *_TO_HARDWARE),
    ("gpu", "power supply"): ("inspect", *_TO_HARDWARE),
    ("gpu", "InfoROM"): ("field-diagnostic", "contact-vendor"),
    ("gpu", "fabric"): ("inspect", "reset-gpu", "reboot", "power-cycle", "field-diagnostic", "contact-vendor"),
    ("gpu", "BAR1"): ("change-setting", "reboot"),
    ("gpu", "ECC mode"): ("change-setting", "reset-gpu"),
    ("gpus", ""): ("reset-gpu", "reboot", "power-cycle", "field-diagnostic", "contact-vendor"),
    ("gpus", "ECC mode"): ("change-setting", "reset-gpu"),
    ("gpu", "MIG mode"): ("change-setting", "reset-gpu"),
    ("gpus", "MIG mode"): ("change-setting", "reset-gpu"),
    ("gpu", "MaxPayload"): ("change-setting", "reboot"),
    ("hca", "MaxPayload"): ("change-setting", "reboot"),
    ("hca", "MaxReadReq"): ("change-setting", "reboot"),
    ("host", "MaxReadReq setting"): ("change-setting", "reboot"),
    ("port", "link layer"): ("change-setting", "reboot"),
    ("gpu", "model"): ("inspect", "contact-vendor"),
    ("board", ""): _GPU,
    ("board", "cooling"): ("inspect", *_TO_HARDWARE),
    ("board", "power supply"): ("inspect", *_TO_HARDWARE),
    ("link", ""): _LINK,
    ("switch", ""): _LINK,
    ("bridge", ""): _LINK,
    ("nvlink", ""): _GPU,
    ("nvswitch", ""): ("reset-gpu", "reboot", "power-cycle", "field-diagnostic", "contact-vendor"),
    ("path", ""): ("change-setting", "reboot"),
    ("host-bridge", ""): ("change-setting", "reboot"),
    ("host-bridge", PEER_TRAFFIC): ("change-setting", "reboot"),
    ("socket-interconnect", ""): ("change-setting", "reboot"),
    ("socket", ""): ("inspect", "contact-vendor"),
    ("fabric", ""): ("inspect", "reseat"),
    ("port", ""): ("reseat", "replace"),
    ("subnet-manager", ""): ("restart-service", "inspect"),
    ("hca", ""): ("inspect", "reseat", "replace"),
    ("hca", "slot"): ("reseat",),
    ("driver", ""): ("load-module", "reboot"),
    ("slot", "missing GPU"): _MISSING,
    ("slot", "missing HCA"): _MISSING,
    ("slot", "missing PCIe switch"): _MISSING_SWITCH,
    ("slot", "missing NVSwitch"): _LOST_NVSWITCH,
    ("disk", ""): ("inspect", "reseat", "replace"),
    ("interface", ""): ("inspect", "reseat"),
    ("host", "IOMMU setting"): ("change-setting", "reboot"),
    ("host", "NVLink rate"): ("inspect", "reboot", "power-cycle", "contact-vendor"),
    ("host", "NVLink setting"): ("change-setting", "reboot"),
    ("host", "PCIe setting"): ("change-setting", "reboot"),
    ("host", "large BARs"): ("change-setting", "reboot"),
    ("host", "peer memory module"): ("load-module", "reboot"),
    ("host", "programs with another driver library"): ("stop-jobs",),
    ("host", "memory"): ("inspect", "reseat", "replace"),
    ("host", "disks"): ("inspect",),
    ("host", "memory bandwidth"): ("change-setting", "inspect"),
    ("host", "cooling"): ("inspect", "contact-vendor"),
    ("host", "power supply"): ("inspect", "contact-vendor"),
    (FABRIC_MANAGER.kind, FABRIC_MANAGER.part): ("inspect", "restart-service", "reboot"),
    ("host", "NVSwitches"): ("restart-service", "reset-gpu", "power-cycle", "field-diagnostic", "contact-vendor"),
    ("host", "placement of GPUs"): ("reseat",),
    ("host", "missing socket"): ("inspect", "power-cycle", "contact-vendor"),
    ("host", "kernel command line"): ("change-setting", "reboot"),
    ("host", "CPU clock setting"): ("change-setting",),
    ("host", "clock source"): ("inspect", "reboot"),
    ("host", "NUMA setting"): ("change-setting", "reboot"),
    ("host", "CPUs"): ("inspect", "contact-vendor"),
    ("host", "kernel"): ("inspect", "reboot"),
    ("host", "container runtime"): ("inspect",),
    ("host", "free memory"): ("inspect",),
    ("host", "programs"): ("inspect",),
    ("host", "open files"): ("inspect",),
    ("host", "file server"): ("inspect",),
    ("host", "burn-in"): ("inspect",),
    ("host", "results of NCCL"): ("inspect",),
    ("host", "network of NCCL"): ("inspect",),
    ("host", "path to other hosts"): ("inspect",),
    ("host", "transfers to other hosts"): ("inspect",),
    ("host", "GPUDirect RDMA"): ("inspect",),
    ("host", "results of diagnostics"): ("inspect",),
    ("host", "changes since the baseline"): ("inspect",),
}
DEFAULT: Steps = ("change-setting",)
"""Of settings, versions and all else that its finding's remedy puts right."""
OF_FAULT: Mapping[Fault, Steps] = {
    Fault.DRIVER_UNRESPONSIVE: ("reboot", "power-cycle"),
    Fault.REBOOT_REQUIRED: ("reboot", "power-cycle", "field-diagnostic", "replace"),
    Fault.REMAP_FAILED: ("field-diagnostic", "replace"),
    Fault.PAGES_EXHAUSTED: ("field-diagnostic", "replace"),
    Fault.PAGES_GROWING: ("field-diagnostic", "replace"),
    Fault.ROWS_EXHAUSTED: ("field-diagnostic", "replace"),
    Fault.SRAM_EXCEEDED: ("field-diagnostic", "replace"),
    Fault.ECC_FLOOD: ("field-diagnostic", "replace"),
    Fault.RETIREMENT_FAILED: ("field-diagnostic", "replace"),
    Fault.NVSWITCH: ("reset-gpu", "reboot", "power-cycle", "field-diagnostic", "contact-vendor"),
    Fault.NVSWITCH_FATAL: ("reboot", "power-cycle", "field-diagnostic", "contact-vendor"),
    Fault.LIBRARY_MISSING: ("change-setting",),
    Fault.LIBRARY_BROKEN: ("change-setting",),
    Fault.NOUVEAU: ("change-setting", "reboot"),
    Fault.MODULE_REFUSED: ("change-setting", "load-module", "reboot"),
    Fault.GPU_REFUSED: ("change-setting", "reboot"),
    Fault.DRIVER_NOT_LOADED: ("load-module", "reboot"),
    Fault.FABRIC_MANAGER_DOWN: ("inspect", "restart-service", "reboot"),
    Fault.NVSWITCH_MISSING: _LOST_NVSWITCH,
    Fault.NVSWITCH_DRIVER: ("inspect", *_LOST_NVSWITCH),
    Fault.FABRIC_MISCONFIGURED: ("inspect",),
    Fault.FABRIC_FAILED: ("reset-gpu", "restart-service", "reboot"),
    Fault.DRIVER_MISMATCH: ("load-module", "reboot"),
    Fault.HCA_NOT_STARTED: ("load-module", *_ADAPTER),
    Fault.NVLINK_UNDETECTED: ("inspect", "reset-gpu", "load-module", "reboot"),
    Fault.IOMMU_BLOCKED: ("inspect",),
    Fault.HCA_HEALTH: ("inspect", "contact-vendor"),
    Fault.HCA_STALLED: ("inspect",),
    Fault.BAR1_SMALL: ("change-setting", "reboot"),
    Fault.BAR1_FULL: ("stop-jobs",),
    Fault.PORT_DISABLED: ("change-setting", "reseat", "replace"),
    Fault.NVLINK_MISWIRED: ("inspect", "power-cycle", "field-diagnostic", "reseat", "contact-vendor"),
    Fault.SWITCH_MISSING: ("inspect", *_MISSING_SWITCH),
    Fault.LINK_SLOW: ("change-setting", *_LINK),
    Fault.LINK_LIMITED: ("change-setting", "reboot"),
    Fault.LINK_DEGRADED: _LINK,
    Fault.LINK_NARROW: _LINK,
    Fault.DEVICE_DISABLED: ("inspect", "reboot"),
    Fault.GPU_UNPOWERED: ("inspect", "power-cycle", *_TO_HARDWARE),
    Fault.RECOVERY_REQUIRED: ("inspect", "reset-gpu", "reboot"),
    Fault.HCA_UNRESPONSIVE: _ADAPTER,
    Fault.HCA_IDENTITY: ("inspect", *_ADAPTER),
    Fault.HCA_FLASH_RECOVERY: ("change-setting", *_ADAPTER),
    Fault.POWER_REACHED: ("inspect", "field-diagnostic", "replace"),
    Fault.DRIVER_STUCK: ("inspect", "reboot", "power-cycle"),
    Fault.KERNEL_PANIC: ("inspect", "reboot", "contact-vendor"),
    Fault.DISK_ERRORS: ("inspect", "replace"),
    Fault.CPU_OFFLINE: ("change-setting", "reboot"),
    Fault.ARRAY_FAILED: ("inspect", "replace"),
}
"""A fault that asks for other steps than its component does; of several the first here.

Remapping that failed and a full page table are NVIDIA's criteria for an RMA once the field diagnostic confirms them
(https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/index.html, dynamic-page-retirement); a recovery action of
``Node Reboot`` is followed as it is (NVML_GPU_RECOVERY_ACTION_NODE_REBOOT).
"""
_BY_A_RESET: Steps = ("reset-gpu", "reboot")
OF_ALL_FAULTS: Mapping[Fault, Steps] = {
    Fault.RETIREMENT_PENDING: _BY_A_RESET,
    Fault.REMAP_PENDING: _BY_A_RESET,
    Fault.REPAIR_PENDING: _BY_A_RESET,
    Fault.DRAIN_REQUIRED: ("inspect", *_BY_A_RESET),
    Fault.FABRIC_DEGRADED: ("inspect", "watch", "contact-vendor"),
    Fault.ECC_CORRECTED: ("watch", "field-diagnostic", "replace"),
    Fault.PAGES_MANY: ("watch", "field-diagnostic", "replace"),
    Fault.AER_UNCORRECTABLE: ("inspect", *_LINK),
    Fault.AER_LOGGED: ("inspect", *_LINK),
    Fault.FILE_SYSTEM: ("inspect",),
    Fault.UNPLUGGED: ("inspect", "power-cycle", "reseat", "contact-vendor"),
    Fault.ROWS_LOW: ("watch", "field-diagnostic", "replace"),
    Fault.GPU_STARTED_LATE: ("watch", *_LINK),
    Fault.GPU_LOST_BEFORE: ("watch", *_LINK),
    Fault.TRANSPORT_ERRORS: ("inspect", "reseat", "replace"),
    Fault.XID_CONTAINED: ("restart-program", "reset-gpu", "field-diagnostic", "replace"),
    Fault.XID_PCIE: ("inspect", *_LINK),
    Fault.XID_SOFTWARE: ("inspect", "contact-vendor"),
    Fault.NVLINK_REPORTED: ("inspect", "reset-gpu", "reboot", "field-diagnostic", "replace"),
    Fault.NVSWITCH_WATCHED: ("watch", "contact-vendor"),
    Fault.NVSWITCH_NOTICE: ("inspect", "contact-vendor"),
    Fault.XID_NOTICE: ("watch", "contact-vendor"),
    Fault.XID_PROGRAMS: ("field-diagnostic", "replace"),
    Fault.XID_APPLICATION: ("check-program",),
}
"""Where nothing else is wrong with the component: what waits for a reset is no case for hardware, and neither is what a
program does to itself. The Xids and SXids are those whose action in NVIDIA's tables is no reset (``xid.entry``)."""

OF_SEVERAL_DEAD: Mapping[tuple[Kind, str], Steps] = {
    ("driver", ""): ("load-module", "reboot", "power-cycle"),
    ("switch", ""): _LINK,
    ("host-bridge", ""): ("reboot", "power-cycle", "contact-vendor"),
    ("socket", ""): ("reboot", "power-cycle", "contact-vendor"),
    ("host", "power supply"): ("inspect", "power-cycle", "contact-vendor"),
}
"""Of what several devices share that are dead: a restart brings them back, or the vendor is needed."""
_OF_HARDWARE = ("restart-service", "reset-gpu", "reboot", "power-cycle", "reseat", "field-diagnostic", "replace")
_SYMPTOMS = frozenset({Fault.SLOW, Fault.DRIFT})
"""What another fault of the component shows as."""


def escalation(component: Component, faults: Collection[Fault | None]) -> Steps:
    """The steps for a component with these faults, never empty; nothing resets what is dead or absent."""
    if component.kind == "driver" and Fault.GPU_LOST in faults and Fault.GPU_NOT_STARTED not in faults:
        return ("reboot", "power-cycle")  # unloading a driver waits for GPUs that do not answer
    if {*faults} & (DEVICE_DEAD | DEVICE_ABSENT):
        return without_reset(OF_SEVERAL_DEAD.get((component.kind, component.part)) or _steps(component, faults))
    return _steps(component, faults)


def without_reset(steps: Steps) -> Steps:
    """For a GPU that cannot be reset, or not without one that is lost: a reboot, then a cold power cycle.

    NVIDIA's action for a GPU that fell off the bus is RESTART_BM (Xid 79).
    """
    if "reset-gpu" not in steps:
        return steps
    at = steps.index("reset-gpu")
    rest: Steps = tuple(step for step in steps[at + 1 :] if step not in ("reboot", "power-cycle"))
    return (*steps[:at], "reboot", "power-cycle", *rest)


def for_a_warning(component: Component, steps: Steps, watched: bool) -> Steps:
    """Less the replacement, for which a warning is no reason (a disk that an array lost is one); ``watched``: first
    see whether it gets worse.
    """
    if component.kind != "disk":
        steps = tuple(step for step in steps if step != "replace") or steps
    harmless = "watch" in steps or steps[0] in ("inspect", "stop-jobs")
    return ("watch", *steps) if watched and not harmless else steps


def _steps(component: Component, faults: Collection[Fault | None]) -> Steps:
    known = {fault for fault in faults if fault is not None and fault not in _SYMPTOMS}
    if known & GPU_DEAD and component.kind == "gpu":
        known -= {Fault.DRIVER_UNRESPONSIVE, Fault.DRIVER_FAILED, Fault.CONTAINER_RUNTIME}  # follows from it
    if known and known <= {*OF_ALL_FAULTS}:
        return next(steps for fault, steps in OF_ALL_FAULTS.items() if fault in known)
    if Fault.UNPLUGGED in known:  # a device that left its slot: no reboot brings a card back that is out of it
        return OF_ALL_FAULTS[Fault.UNPLUGGED]
    if component.kind == "driver" and known == {Fault.DISAGREEMENT}:
        return ("inspect",)
    if component.part == NVSWITCHES.part and Fault.XID in known:
        return OF_FAULT[Fault.NVSWITCH]
    particular = next((steps for fault, steps in OF_FAULT.items() if fault in known), None)
    steps = particular or OF_COMPONENT.get((component.kind, component.part), DEFAULT)
    if Fault.WRONG_DATA in known and steps[0] == "change-setting":
        return ("stop-jobs", *steps)  # what runs meanwhile computes with wrong data
    if not known and Fault.SLOW in faults and steps[0] in _OF_HARDWARE:
        # a figure alone is measured again and compared before anything is disturbed
        return ("inspect", *(step for step in steps if step != "inspect"))
    return steps
