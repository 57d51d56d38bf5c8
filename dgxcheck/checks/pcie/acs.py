"""ACS: which ports send the traffic between two devices up to the root complex?"""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.pcie.iommu import unsure
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Acs, PortType
from dgxcheck.topology.classes import shared_bridges
from dgxcheck.topology.model import Device

REDIRECT = 0x3C


def between(box: Box, a: Device, b: Device) -> list[str] | Missing:
    """Bridges whose ACS matters to a pair: below the nearest common one, and that one where it is no root port."""
    if isinstance(a.path, Missing):
        return a.path
    if isinstance(b.path, Missing):
        return b.path
    shared = shared_bridges(a.path, b.path)
    common = a.path[shared] if shared else None
    found = [*a.path[1 + shared : -1], *b.path[1 + shared : -1]]
    return [*([common] if common and not _is_root_port(box, common) else []), *found]


def redirecting(box: Box, a: Device, b: Device) -> list[str] | Missing:
    """The ports between two devices that send their traffic up; a gap where one cannot be read."""
    ports = between(box, a, b)
    if isinstance(ports, Missing):
        return ports
    found = [port for port in ports if redirects(box, port)]
    gap = next((row for port in ports if isinstance(row := control_of(box, port), Missing)), None)
    return found if found or gap is None else gap


def redirects(box: Box, port: str) -> bool:
    """Is one of the redirect bits seen to be on?"""
    row = control_of(box, port)
    return isinstance(row, Acs) and bool(row.control & REDIRECT)


def control_of(box: Box, bdf: str) -> Acs | Missing | None:
    """ACS registers of a port; None where it has no such capability, a gap where they cannot be read."""
    rows = box.snapshot.config_space
    if isinstance(rows, Missing):
        return rows
    nobody = Missing(Gap.UNRECORDED, f"/sys/bus/pci/devices/{bdf}/config")
    return next((row.acs for row in rows if row.bdf == bdf), nobody)


def _is_root_port(box: Box, bdf: str) -> bool:
    """By its own word, else by its place: nothing but the root bus is above it."""
    rows = box.snapshot.config_space
    for row in () if isinstance(rows, Missing) else rows:
        if row.bdf == bdf and not isinstance(row.express, Missing) and not isinstance(row.express.port_type, Missing):
            return row.express.port_type is PortType.ROOT_PORT
    function = box.topology.functions.get(bdf)
    return function is not None and not isinstance(function.path, Missing) and len(function.path) == 2


def lifted(box: Box, *ports: str) -> str:
    """What clears the redirect bits alone, source validation stays; no command where something may need them."""
    if why := unsure(box):
        return f"first find out: {why}; only where none does, and none run, disable ACS in the firmware"
    commands = "; ".join(f"setpci -s {port} ECAP_ACS+0x6.w=0:3c" for port in ports)
    return (
        f"disable ACS in the firmware, or at every boot: {commands}; it takes isolation from the devices below, so not"
        " where virtual machines are to be given any"
    )
