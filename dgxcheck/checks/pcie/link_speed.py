"""Why a PCIe link runs at a lower generation than both its ends support: a setting, or the link itself."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Evidence
from dgxcheck.checks.pcie.acs import config_space_of
from dgxcheck.components.component import Component
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import Control
from dgxcheck.topology.paths import Hop


def target_gen(box: Box, hop: Hop) -> int | None:
    """The generation to which a setting limits the link: Target Link Speed of its upper end; None if unknown."""
    space = config_space_of(box, hop.port)
    control = None if isinstance(space, Missing) else space.control
    return control.target_gen if isinstance(control, Control) and isinstance(control.target_gen, int) else None


def slow_fault(box: Box, hop: Hop) -> FaultKind:
    """Of a link that is slow: held by a setting, trained below it, or LINK_SLOW where the setting cannot be read."""
    target = target_gen(box, hop)
    if target is None or isinstance(hop.max_gen, Missing):
        return Fault.LINK_SLOW
    held = target < hop.max_gen and not isinstance(hop.gen, Missing) and target <= hop.gen
    return Fault.LINK_LIMITED if held else Fault.LINK_DEGRADED


def target_evidence(box: Box, hop: Hop) -> Iterator[Evidence]:
    """The setting, where it can be read."""
    if (target := target_gen(box, hop)) is not None:
        yield Evidence(f"/sys/bus/pci/devices/{hop.port}/config", f"Target Link Speed gen{target}")


def port_setting(hop: Hop) -> Component:
    """The link speed setting of the port above a link."""
    return Component(kind="bridge", name=hop.port, bdf=hop.port, part="PCIe setting")
