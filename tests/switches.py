"""PCIe switches of a box as components."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.components.component import Component
from dgxcheck.components.locate import switch_at
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device


def switch_above(box: Box, device: Device) -> Component | None:
    """The switch nearest above a device, by its upstream port; None where there is none."""
    # root bus, root port, then upstream and downstream ports of switches, then the device
    if isinstance(device.path, Missing) or len(device.path) <= 4:
        return None
    return switch_at(box, device.path[-3])
