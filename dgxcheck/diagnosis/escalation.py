"""Which steps a cause asks for, from the least disruptive up: those of its faults, else of the component to blame; and
which of its findings has the remedy that is printed.

The order for a GPU is NVIDIA's: reset, reboot, cold power cycle, field diagnostic, RMA. Draining and stopping jobs is
no step of these lists: ``actions`` puts it before the first step that disturbs them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import cast

from dgxcheck.checks.engine.finding import BAD, Finding, Status
from dgxcheck.components.component import Component, Kind
from dgxcheck.components.containment import NVSWITCHES, OF_SLOT
from dgxcheck.facts.faults import DEVICE_ABSENT, DEVICE_DEAD, EVERY_FAULT, GPU_DEAD, MODULES_REFUSED, SILENT, Fault
from dgxcheck.facts.faults.kind import LINK_STEPS, RESET_STEPS, FaultKind, Step, Steps
from dgxcheck.package_files import table

_RESTART: Steps = ("change-setting", "reboot")
_FUNCTION: Steps = ("inspect", "power-cycle", "contact-vendor")
"""No slot, cable or board is known of it."""
OF_PARTS = {(cast(Kind, row["kind"]), row["part"].strip("-")): row for row in table("diagnosis/steps.tsv")}
OF_COMPONENT, OF_SEVERAL_DEAD = (
    {place: cast(Steps, tuple(row[column].split())) for place, row in OF_PARTS.items() if row[column] != "-"}
    for column in ("steps", "shared")
)
"""By kind and part (empty: the whole), where its faults ask for nothing, and where several dead devices share it."""
DEFAULT: Steps = ("change-setting",)
"""Of settings, versions and all else that its finding's remedy puts right."""
_OF_HARDWARE = ("restart-service", "reset-gpu", "reboot", "power-cycle", "reseat", "field-diagnostic", "replace")
ASK_FOR_RESET = frozenset({Fault.RESET_REQUIRED, Fault.DRAIN_AND_RESET})
_BRING_BACK: frozenset[Step] = frozenset({"reset-gpu", "reboot", "power-cycle"})
"""Each of them is the reset that is asked for."""
FOLLOWING: Mapping[Kind, frozenset[FaultKind]] = {
    "gpu": frozenset({
        Fault.DRIVER_UNRESPONSIVE, Fault.DRIVER_FAILED, Fault.DRIVER_NOT_LOADED, Fault.CONTAINER_RUNTIME,
        Fault.CONTAINER_ERROR, Fault.DRIVER_STUCK,
    }),
    "port": frozenset({Fault.HCA_OVERHEATING}), "host": frozenset({Fault.HCA_OVERHEATING, Fault.DRIVER_STUCK}),
}  # fmt: skip
"""What says nothing of the component of this kind: of a GPU that is dead or does not answer, of a hot transceiver, of
the air of a host or its CPUs."""
_WAITING = (
    Fault.DISK_ERRORS, Fault.DISK, Fault.IOMMU_UNANSWERED, Fault.GPUS_NOT_OFFERED, Fault.FABRIC_MANAGER_DOWN,
    Fault.DRIVER_NOT_LOADED,
)  # fmt: skip
"""What comes back with the component that it waits for."""
_OF_AN_END = frozenset({Fault.XID_SIGNAL, Fault.XID_PEER})
"""NVLink errors of which NVIDIA's table says from which end they come: each with steps of its own."""
_SYMPTOMS = frozenset({Fault.SLOW, Fault.DRIFT, Fault.TEST_FAILED})
"""What another fault of the component shows as."""


def escalation(component: Component, faults: Collection[FaultKind | None]) -> Steps:
    """The steps for a component with these faults, never empty; nothing resets what is dead or absent.

    An adapter in front of NVSwitches that is reset or bound again starts no fabric: Fabric Manager is restarted after
    it. One that is off the bus comes back with the machine alone, and so does Fabric Manager.
    """
    steps = _escalation(component, faults)
    waits = (
        component.kind == "hca" and Fault.FABRIC_MANAGER_DOWN in faults and Fault.HCA_LOST not in faults
        and "restart-service" not in steps
    )  # fmt: skip
    at = next((n for n, step in enumerate(steps) if step in _WITH_THE_MACHINE), len(steps))
    return (*steps[:at], "restart-service", *steps[at:]) if waits else steps


_WITH_THE_MACHINE: tuple[Step, ...] = ("reboot", "power-cycle", "reseat", "replace", "contact-vendor")
"""Steps that start services again, or that are of somebody else."""


def _escalation(component: Component, faults: Collection[FaultKind | None]) -> Steps:
    silent = Fault.GPU_LOST in faults and {Fault.GPU_NOT_STARTED, Fault.GPU_REFUSED}.isdisjoint(faults)
    if component.kind == "driver" and silent:
        return ("reboot", "power-cycle")  # unloading a driver waits for GPUs that do not answer
    refused = next((fault for fault in (*MODULES_REFUSED, Fault.GPU_REFUSED) if fault in faults), None)
    if component.kind == "driver" and refused is not None:
        return refused.steps  # the kernel or the driver says why: loading it again ends like before
    if {*faults} & (DEVICE_DEAD | DEVICE_ABSENT):
        return without_reset(OF_SEVERAL_DEAD.get((component.kind, component.part)) or _steps(component, faults))
    steps = _steps(component, faults)
    halted = component.part == "cooling" and Fault.XID in faults
    if (halted or {*faults} & ASK_FOR_RESET) and _BRING_BACK.isdisjoint(steps):
        at = int(steps[0] in ("inspect", "stop-jobs"))
        return (*steps[:at], *RESET_STEPS, *steps[at:])
    return steps


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


def _steps(component: Component, faults: Collection[FaultKind | None]) -> Steps:
    causing = {fault for fault in faults if fault is not None and fault not in _SYMPTOMS}
    rest = causing - FOLLOWING.get(component.kind, frozenset())
    if component.part == "memory" or component.kind not in ("host", "driver"):
        # a panic says nothing of the device or DIMM that asked for it
        rest = rest - {Fault.KERNEL_PANIC} or rest
    for fault in _WAITING if component.kind != "disk" else ():
        rest = rest - {fault} or rest
    if component.kind == "gpu":
        stuck = Fault.DRIVER_STUCK in causing and rest.isdisjoint(GPU_DEAD | ASK_FOR_RESET)
        if stuck or (Fault.DRIVER_UNRESPONSIVE in causing and not rest):  # nvidia-smi hangs as well
            return without_reset(_steps(component, rest))
    causing = rest
    if causing & GPU_DEAD:
        causing -= {Fault.REBOOT_REQUIRED}  # what brings a lost GPU back begins with it
    others = causing - ASK_FOR_RESET
    asked = component.kind == "gpu" and others != causing and not causing.isdisjoint(_OF_AN_END)
    if any("reset-gpu" in fault.steps for fault in others):
        causing = others
    if Fault.XID_LINK_OFF in causing or asked:
        causing -= {Fault.NVLINK_DOWN}  # software switched it off; or the driver says what it was and asks for a reset
    if causing >= {Fault.PORT_DISABLED, Fault.PORT_MODULE}:  # a module with an error keeps its port down
        return ("inspect", *Fault.PORT_DISABLED.steps)
    if component.kind == "function" and causing and all("reseat" in fault.steps for fault in causing):
        return _FUNCTION
    ordered = sorted(causing, key=EVERY_FAULT.index)
    if causing and all(fault.alone for fault in causing):
        return ordered[0].steps
    if component.kind in ("nvswitch", "slot") and Fault.NVSWITCH_MISSING in causing:  # off the bus
        return Fault.NVSWITCH_MISSING.steps
    if component.kind == "driver" and causing == {Fault.DISAGREEMENT}:
        return ("inspect",)
    if component.part == NVSWITCHES.part and causing & {Fault.XID, Fault.NVLINK_ERRORS}:
        return Fault.NVSWITCH.steps
    if (component.kind, component.part) == ("host", "PCIe setting"):  # of all devices: no slot or seat is at fault
        return (*_RESTART, "power-cycle", "contact-vendor")
    particular = next((fault.steps for fault in ordered if fault.steps and not fault.alone), None)
    if particular is None and component.kind == "gpu" and {fault.about for fault in causing} == {("link", "")}:
        return ("inspect", *LINK_STEPS)  # the path above the GPU is not known, and no reset mends a link
    steps = particular or OF_COMPONENT.get((component.kind, component.part), DEFAULT)
    if Fault.WRONG_DATA in causing and (steps[0] == "change-setting" or component.kind in ("nvlink", "path")):
        return ("stop-jobs", *steps)  # what runs meanwhile computes with wrong data
    unnamed = (component.kind, component.part) == ("host", "PCIe links")
    if ((not causing and _SYMPTOMS & {*faults}) or unnamed) and steps[0] in _OF_HARDWARE:
        # figures, differences and failed tests alone, and words that name no device, are confirmed before all else
        return ("inspect", *steps)
    return steps


_SAY_WHY = frozenset(
    {*MODULES_REFUSED, Fault.GPU_REFUSED, Fault.GPU_UNRECOGNISED, Fault.START_MEMORY, Fault.GPU_UNPOWERED,
     Fault.XID_LINK_OFF, Fault.DRIVER_UNBOUND, Fault.HEAT_SINK}
)  # fmt: skip
"""Software switched a link off, one GPU is hot among cool ones; the kernel or the driver gives its reason: the rest
follows."""


def remedy_finding(component: Component, explained: Sequence[Finding], looks: bool = False) -> Finding:
    """The finding whose remedy is about the component: that it is dead, from which the rest of it follows; else one
    that blames it first, of a state rather than of the log.

    ``looks``: one whose remedy begins with what only looks, where there is one; the others' may burn, set or reset.
    What only waits for the component comes last.
    """
    usual = OF_COMPONENT.get((component.kind, component.part), ())[:1] == ("inspect",)

    def inspects(fault: FaultKind | None) -> bool:
        if fault is None or fault.steps:
            return fault is not None and fault.steps[0] == "inspect"
        return usual and fault.category in ("hardware", "environment")

    def rank(finding: Finding) -> tuple[bool, bool, bool, bool, bool, bool, bool, int]:
        acts = looks and not inspects(finding.judgement.fault)
        says_why = finding.judgement.fault in _SAY_WHY
        dead = finding.judgement.fault in DEVICE_DEAD
        whole = finding.judgement.fault in SILENT and component.part in ("", OF_SLOT)
        itself = whole and finding.subject.bdf == component.bdf
        indirect = dead or finding.witness == "log"
        elsewhere = not finding.blames or finding.blames[0].key != component.key
        unread = finding.status is Status.UNKNOWN
        waits = elsewhere and finding.judgement.fault in _WAITING
        return waits, acts, not says_why, not itself, unread, indirect, elsewhere, BAD.index(finding.status)

    return min(explained, key=rank)
