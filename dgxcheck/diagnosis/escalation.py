"""Which steps a cause asks for, from the least disruptive up, by the part that is to blame and what was found of it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from dgxcheck.checks.engine.check import Box, row_of
from dgxcheck.checks.engine.finding import Finding
from dgxcheck.diagnosis.component import Component
from dgxcheck.diagnosis.reset_domain import can_reset
from dgxcheck.facts.gpu import GpuEcc

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
    ("gpu", "MIG mode"): ("change setting", "reset GPU"),
    ("gpu", "clock setting"): ("change setting",),
    ("gpu", "power limit"): ("change setting",),
    ("gpu", "compute mode"): ("change setting",),
    ("gpu", "persistence mode"): ("change setting",),
    ("gpu", "device node"): ("change setting",),
    ("gpu", ""): ("stop job", "reset GPU", "power-cycle cold", "reseat or cable", "replace"),
    ("link", ""): ("power-cycle cold", "reseat or cable", "replace"),
    ("switch", ""): ("power-cycle cold", "reseat or cable", "replace"),
    ("port of a switch", ""): ("power-cycle cold", "reseat or cable", "replace"),
    ("fabric", ""): ("reseat or cable", "replace"),
    ("nvlink", ""): ("stop job", "reset GPU", "power-cycle cold", "reseat or cable", "replace"),
    ("gpu", "model"): ("replace",),
    ("gpu", "versions and settings"): ("change setting",),
    ("path", ""): ("change setting", "reboot"),
    ("port", ""): ("reseat or cable", "replace"),
    ("subnet manager", ""): ("restart service", "reseat or cable"),
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
    ("host bridge", ""): ("change setting", "reboot"),
    ("socket interconnect", ""): ("change setting", "reboot"),
    ("disk", ""): ("reseat or cable", "replace"),
    ("interface", ""): ("reseat or cable", "change setting"),
}
OF_FINDING: Mapping[str, tuple[Step, ...]] = {
    "driver.nouveau": ("change setting", "reboot"),
    "driver.fabric": ("restart service", "reset GPU", "reboot"),
    "driver.responsive": ("reboot", "power-cycle cold"),
    "pcie.bar1": ("change setting", "reboot"),
    "gdr.bar1": ("stop job",),
    "kernel.hca": ("load module", "power-cycle cold", "reseat or cable", "replace"),
    "pcie.generation": ("change setting", "power-cycle cold", "reseat or cable", "replace"),
}
"""What was found may ask for other steps than the part does."""
LOST = ("gpu.lost", "kernel.off-bus", "kernel.gpu-start", "gpu.count")
"""A GPU that is gone cannot be reset."""
_OFF_AND_ON = ("reboot", "power-cycle cold")
SWITCHED_OFF = ", disabled"
"""A port that somebody has disabled, in the words of its finding: no cable is to blame yet."""
NO_LIBRARY = "libnvidia-ml.so.1 not found"


def ladder(box: Box, component: Component, explained: Sequence[Finding], gone: Collection[str]) -> tuple[Step, ...]:
    """Never empty; ``gone`` are the bus ids of lost GPUs: nothing resets these, nor what is reset with them."""
    if _worn(box, component, explained):
        return ("replace",)
    if any(each.id == "gpu.reset-required" and says([each], "reboot") for each in explained):
        return ("reboot", "power-cycle cold", "reseat or cable", "replace")
    kind, part = component.kind, component.part
    if kind == "port" and says(explained, SWITCHED_OFF):
        return ("change setting", "reseat or cable", "replace")
    if kind == "driver" and says(explained, NO_LIBRARY):
        return ("change setting", "reboot")
    found = next((OF_FINDING[finding.id] for finding in explained if finding.id in OF_FINDING), None)
    steps = found or LADDERS.get((kind, part)) or LADDERS.get((kind, part.partition(" at ")[0])) or ("change setting",)
    if "reset GPU" not in steps or (can_reset(box, component, gone) and not any(each.id in LOST for each in explained)):
        return steps
    left = tuple(step for step in steps if step not in ("stop job", "reset GPU"))
    return left if any(step in _OFF_AND_ON for step in left) else (*left, "power-cycle cold")


def says(explained: Sequence[Finding], words: str) -> bool:
    """Does the message of a finding have these words?"""
    return any(words in each.judgement.message for each in explained)


def _worn(box: Box, component: Component, explained: Sequence[Finding]) -> bool:
    """Is there nothing left to retire, or no spare row? A reset does not bring these back."""
    row = row_of(box.snapshot.gpu_ecc, component.bdf)
    failed = isinstance(row, GpuEcc) and row.remap_failed is True
    return any(each.id == "ecc.retired-pages" or (each.id == "ecc.row-remap" and failed) for each in explained)
