"""What a person takes out of the machine, seats again or replaces, and what to look at before."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.component import Component
from dgxcheck.diagnosis.escalation import Step
from dgxcheck.diagnosis.reset_domain import form_factor

_LOOK_AT = {
    ("host", "cooling"): "look at fans, filters and the inlet air; in a DGX Station at pump and coolant",
    ("host", "power supply"): "look at the power supplies, their cables and feeds",
    ("host", "memory"): "look for DIMMs that are gone or have errors, dmidecode -t memory names their slots; reseat"
    " those",
    ("host", "placement of GPUs"): "compare with the reference machine (dgxcheck topo --tree), and move the cards back",
    ("fabric", ""): "look at the switch that the cables go to, and at their seating",
    ("subnet-manager", ""): "look at the cable's other end: it may be in a fabric that has no subnet manager",
    ("gpu", "cooling"): "look at fans, filters and the air before it; then reseat",
    ("gpu", "power supply"): "look at the power cables and supplies that feed it; then reseat",
    ("hca", "slot"): "move it to the slot where the reference machine has one",
}  # fmt: skip
"""Before or in place of a new seat, by kind and part."""


def by_hand(box: Box, component: Component, step: Step) -> str:
    """For the steps ``reseat or cable`` and ``replace``."""
    verb = "reseat" if step == "reseat or cable" else "replace"
    kind, part = component.kind, component.part
    look = _LOOK_AT.get((kind, part)) if verb == "reseat" else None
    if kind in ("gpu", "link", "nvlink", "switch") or part in ("missing GPU", "missing PCIe switch", "NVSwitches"):
        return f"{look or verb} {form_factor(box, component)}"
    if look is not None:
        return look
    if part == "missing HCA":
        return f"{verb} it and the riser that carries it"
    if kind in ("port", "interface"):
        return f"{verb} the cable or transceiver at {component.name}"
    if kind == "disk":
        of = f"the disk that {component.name} lacks" if component.name.startswith("md") else f"disk {component.name}"
        return f"{verb} {of}"
    return f"{verb} {f'what has failed of {component.name}' if kind in ('host', 'fabric') else component}"
