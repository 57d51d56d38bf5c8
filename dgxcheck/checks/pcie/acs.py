"""ACS: the ports that redirect traffic between two devices to the root complex."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.pcie.iommu import reason_to_keep_acs
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Acs, ConfigSpace, PortType
from dgxcheck.topology.classes import shared_bridges
from dgxcheck.topology.model import Device

REDIRECT = 0x3C
"""Request and completion redirect, upstream forwarding, egress control."""


def ports_between(box: Box, a: Device, b: Device) -> list[str] | Missing:
    """Bdfs of the bridges whose ACS affects a pair: all below the nearest common one, and that one where it is not a
    root port.
    """
    if isinstance(a.path, Missing):
        return a.path
    if isinstance(b.path, Missing):
        return b.path
    shared = shared_bridges(a.path, b.path)
    common = [a.path[shared]] if shared and not _is_root_port(box, a.path[shared]) else []
    return [*common, *a.path[1 + shared : -1], *b.path[1 + shared : -1]]


def redirecting_ports(box: Box, a: Device, b: Device) -> list[str] | Missing:
    """Bdfs of the ports between two devices that redirect; Missing where none does and one cannot be read."""
    ports = ports_between(box, a, b)
    if isinstance(ports, Missing):
        return ports
    redirecting = [port for port in ports if redirects(box, port)]
    gap = next((acs for port in ports if isinstance(acs := acs_of(box, port), Missing)), None)
    return redirecting if redirecting or gap is None else gap


def redirects(box: Box, port: str) -> bool:
    """Is one of the redirect bits known to be set?"""
    acs = acs_of(box, port)
    return isinstance(acs, Acs) and bool(acs.control & REDIRECT)


def acs_of(box: Box, bdf: str) -> Acs | Missing | None:
    """The ACS registers of a port; None without the capability, Missing where they cannot be read."""
    space = config_space_of(box, bdf)
    return space if isinstance(space, Missing) else space.acs


def config_space_of(box: Box, bdf: str) -> ConfigSpace | Missing:
    """The configuration space of a GPU, HCA, NVSwitch or bridge."""
    rows = box.snapshot.config_space
    if isinstance(rows, Missing):
        return rows
    unrecorded = Missing(Gap.UNRECORDED, f"/sys/bus/pci/devices/{bdf}/config")
    return next((row for row in rows if row.bdf == bdf), unrecorded)


def _is_root_port(box: Box, bdf: str) -> bool:
    """By its PCI Express capability, else by its path: only the root bus is above it."""
    space = config_space_of(box, bdf)
    express = space if isinstance(space, Missing) else space.express
    if isinstance(express, Missing) or isinstance(express.port_type, Missing):
        function = box.topology.functions.get(bdf)
        return function is not None and not isinstance(function.path, Missing) and len(function.path) == 2
    return express.port_type is PortType.ROOT_PORT


def disable_acs(box: Box, *ports: str) -> str:
    """The remedy: commands that clear the redirect bits alone; no command where IOMMU or virtual machines may need
    them (setpci(8)).
    """
    if reason := reason_to_keep_acs(box):
        return f"do not disable ACS yet: {reason}; if neither is the case, disable ACS in the firmware setup"
    commands = "; ".join(f"setpci -s {port} ECAP_ACS+0x6.w=0:3c" for port in ports)
    return (
        f"disable ACS in the firmware setup, or run at every boot: {commands}; this removes the isolation between the"
        " devices below, so do not do it if any of them is to be passed to a virtual machine"
    )
