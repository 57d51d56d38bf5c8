"""Which steps a cause asks for, from the least disruptive up, by the part that is to blame and what was found of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.fault import DEVICE_ABSENT, DEVICE_DEAD, Fault
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.reset_domain import can_reset

Step = Literal[
    "nothing", "restart service", "load module", "change setting", "stop job", "reset GPU", "reboot",
    "power-cycle cold", "reseat or cable", "replace",
]  # fmt: skip

LADDERS: Mapping[tuple[str, str], tuple[Step, ...]] = {
    ("gpu", "memory"): ("stop job", "reset GPU", "reboot", "replace"),
    ("gpu", "cooling"): ("reseat or cable", "replace"),
    ("gpu", "power supply"): ("reseat or cable", "replace"),
    ("gpu", "NVLink"): ("stop job", "reset GPU", "power-cycle cold", "reseat or cable", "replace"),
    ("gpu", "InfoROM"): ("reboot", "replace"),
    ("gpu", "BAR1"): ("change setting", "reboot"),
    ("gpu", "ECC mode"): ("change setting", "reset GPU"),
    ("gpus", "ECC mode"): ("change setting", "reset GPU"),
    ("gpus", "MIG mode"): ("change setting", "reset GPU"),
    ("gpu", "MIG mode"): ("change setting", "reset GPU"),
    ("gpu", "clock setting"): ("change setting",),
    ("gpu", "power limit"): ("change setting",),
    ("gpu", "compute mode"): ("change setting",),
    ("gpu", "persistence mode"): ("change setting",),
    ("gpu", "device node"): ("change setting",),
    ("gpu", ""): ("stop job", "reset GPU", "power-cycle cold", "reseat or cable", "replace"),
    ("link", ""): ("power-cycle cold", "reseat or cable", "replace"),
    ("switch", ""): ("power-cycle cold", "reseat or cable", "replace"),
    ("bridge", ""): ("power-cycle cold", "reseat or cable", "replace"),
    ("fabric", ""): ("reseat or cable", "replace"),
    ("nvlink", ""): ("stop job", "reset GPU", "power-cycle cold", "reseat or cable", "replace"),
    ("gpu", "model"): ("replace",),
    ("gpu", "versions and settings"): ("change setting",),
    ("path", ""): ("change setting", "reboot"),
    ("port", ""): ("reseat or cable", "replace"),
    ("subnet-manager", ""): ("restart service", "reseat or cable"),
    ("hca", ""): ("change setting", "reseat or cable", "replace"),
    ("hca", "firmware"): ("change setting",),
    ("hca", "slot"): ("reseat or cable",),
    ("driver", ""): ("load module", "reboot"),
    ("slot", "missing GPU"): ("power-cycle cold", "reseat or cable", "replace"),
    ("slot", "missing HCA"): ("power-cycle cold", "reseat or cable", "replace"),
    ("slot", "missing PCIe switch"): ("power-cycle cold", "reseat or cable", "replace"),
    ("host", "IOMMU setting"): ("change setting", "reboot"),
    ("host", "peer memory module"): ("load module", "reboot"),
    ("host", "programs with another driver library"): ("stop job",),
    ("host", "memory"): ("reseat or cable", "replace"),
    ("host", "memory bandwidth"): ("change setting", "reseat or cable"),
    ("host", "cooling"): ("reseat or cable", "replace"),
    ("host", "power supply"): ("reseat or cable", "replace"),
    ("host", "large BARs"): ("change setting", "reboot"),
    ("host", "PCIe setting"): ("change setting", "reboot"),
    ("host", "NVLink setting"): ("change setting", "reboot"),
    ("host", "NVSwitches"): ("restart service", "reset GPU", "power-cycle cold", "reseat or cable", "replace"),
    ("host", "placement of GPUs"): ("reseat or cable",),
    ("host", "device nodes"): ("change setting",),
    ("host-bridge", ""): ("change setting", "reboot"),
    ("socket-interconnect", ""): ("change setting", "reboot"),
    ("disk", ""): ("reseat or cable", "replace"),
    ("interface", ""): ("reseat or cable", "change setting"),
}
OF_FAULT: Mapping[Fault, tuple[Step, ...]] = {
    Fault.NOUVEAU: ("change setting", "reboot"),
    Fault.LIBRARY_MISSING: ("change setting", "reboot"),
    Fault.FABRIC_MANAGER_DOWN: ("restart service", "reset GPU", "reboot"),
    Fault.FABRIC_FAILED: ("restart service", "reset GPU", "reboot"),
    Fault.DRIVER_UNRESPONSIVE: ("reboot", "power-cycle cold"),
    Fault.BAR1_SMALL: ("change setting", "reboot"),
    Fault.BAR1_FULL: ("stop job",),
    Fault.HCA_NOT_STARTED: ("load module", "power-cycle cold", "reseat or cable", "replace"),
    Fault.LINK_SLOW: ("change setting", "power-cycle cold", "reseat or cable", "replace"),
    Fault.PORT_DISABLED: ("change setting", "reseat or cable", "replace"),
    Fault.REBOOT_REQUIRED: ("reboot", "power-cycle cold", "reseat or cable", "replace"),
    Fault.PAGES_EXHAUSTED: ("replace",),
    Fault.REMAP_FAILED: ("replace",),
}
"""What is wrong may ask for other steps than the component does; the first that applies, worst first."""
_ON_OFF = ("reboot", "power-cycle cold")


def ladder(box: Box, component: Component, explained: Sequence[Finding]) -> tuple[Step, ...]:
    """The steps for a component, never empty; nothing resets a GPU that is lost or missing, nor what is reset with it."""
    faults = {each.judgement.fault for each in explained}
    own = next((steps for fault, steps in reversed([*OF_FAULT.items()]) if fault in faults), None)
    steps = own or LADDERS.get((component.kind, component.part)) or ("change setting",)
    dead = {each.subject.bdf for each in explained if each.judgement.fault in DEVICE_DEAD | DEVICE_ABSENT}
    if "reset GPU" not in steps or (not dead and can_reset(box, component, {bdf for bdf in dead if bdf is not None})):
        return steps
    left = tuple(step for step in steps if step not in ("stop job", "reset GPU"))
    return left if any(step in _ON_OFF for step in left) else (*left, "power-cycle cold")
