"""Which steps a cause asks for, from the least disruptive up, by the part that is to blame and what was found of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from dgxcheck.checks.check import Box, row_of
from dgxcheck.checks.finding import Finding, Status
from dgxcheck.diagnosis.component import Component
from dgxcheck.facts.gpu_ecc import GpuEcc

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
    ("host", "IOMMU setting"): ("change setting", "reboot"),
    ("host", "peer memory module"): ("load module", "reboot"),
    ("host", "memory"): ("reseat or cable", "replace"),
    ("host", "memory bandwidth"): ("change setting", "reseat or cable"),
    ("host", "cooling"): ("reseat or cable", "replace"),
    ("host", "power supply"): ("reseat or cable", "replace"),
    ("host", "large BARs"): ("change setting", "reboot"),
    ("host", "PCIe setting"): ("change setting", "reboot"),
    ("host", "NVLink setting"): ("restart service", "change setting", "reboot"),
    ("host", "placement of GPUs"): ("reseat or cable",),
    ("host", "device nodes"): ("change setting",),
    ("host bridge", ""): ("change setting", "reboot"),
    ("socket interconnect", ""): ("change setting", "reboot"),
    ("disk", ""): ("replace",),
    ("interface", ""): ("reseat or cable", "change setting"),
}
OF_FINDING: Mapping[str, tuple[Step, ...]] = {
    "driver.nouveau": ("change setting", "reboot"),
    "driver.library": ("load module", "reboot"),
    "driver.version-match": ("load module", "reboot"),
    "driver.fabric": ("restart service", "reset GPU", "reboot"),
    "driver.responsive": ("reboot", "power-cycle cold"),
    "topology.nvml-agrees": ("load module", "reboot"),
    "kernel.hca": ("load module", "power-cycle cold", "reseat or cable", "replace"),
    "pcie.generation": ("change setting", "power-cycle cold", "reseat or cable", "replace"),
}
"""What was found may ask for other steps than the part does."""
OF_WARNING: Mapping[str, tuple[Step, ...]] = {"driver.version-match": ("restart service",)}
"""Programs that were turned away, not the driver itself."""
LOST = ("gpu.lost", "kernel.off-bus", "gpu.count")
"""A GPU that is gone cannot be reset."""


def ladder(box: Box, component: Component, explained: Sequence[Finding]) -> tuple[Step, ...]:
    """Never empty."""
    if _worn(box, component, explained):
        return ("replace",)
    kind, part = component.kind, component.part
    mild = all(finding.status is Status.WARN for finding in explained)
    known = {**OF_FINDING, **(OF_WARNING if mild else {})}
    found = next((known[finding.id] for finding in explained if finding.id in known), None)
    steps = found or LADDERS.get((kind, part)) or LADDERS.get((kind, part.partition(" at ")[0])) or ("change setting",)
    if any(finding.id in LOST for finding in explained):
        return tuple(step for step in steps if step not in ("stop job", "reset GPU")) or ("power-cycle cold",)
    return steps


def _worn(box: Box, component: Component, explained: Sequence[Finding]) -> bool:
    """Is there nothing left to retire, or no spare row? A reset does not bring these back."""
    row = row_of(box.snapshot.gpu_ecc, component.bdf)
    failed = isinstance(row, GpuEcc) and row.remap_failed is True
    return any(each.id == "ecc.retired-pages" or (each.id == "ecc.row-remap" and failed) for each in explained)
