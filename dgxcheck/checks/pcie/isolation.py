"""IOMMU and ACS: what keeps devices apart, and so blocks the traffic between two of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.check import remedy_of
from dgxcheck.checks.engine.expected import is_coherent
from dgxcheck.checks.engine.host_limits import hypervisor_gaps
from dgxcheck.checks.pcie.acs_rules import acs_rules
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.locate import bridge_setting, device_part, is_below, nvlinks_between, peer_path
from dgxcheck.facts.missing import Gap, Missing, need, or_gap, rows, text_of
from dgxcheck.facts.pci import Acs, ConfigSpace, PortType
from dgxcheck.facts.sysfs import pci_file
from dgxcheck.topology.model import Device
from dgxcheck.topology.paths import data_paths, shared_bridges

PASS_THROUGH = "identity"
_BOOTED = frozenset({"iommu=pt", "iommu.passthrough=1"})


@or_gap
def group_type(box: Box, bdf: str | None) -> str | Missing | None:
    """The type of a device's IOMMU group: ``DMA``, ``DMA-FQ``, ``identity``; None without an IOMMU group."""
    functions = need(need(box.snapshot.iommu).functions)
    unrecorded = Missing(Gap.UNRECORDED, pci_file(bdf, "iommu_group"))
    group = next((function.group for function in functions if function.bdf == bdf), unrecorded)
    if group is None or isinstance(group, Missing):
        return group
    if isinstance(group.type, Missing) and group.type.gap is Gap.ABSENT and _boots_with_pass_through(box):
        return PASS_THROUGH  # kernels before 5.11 have no file of the type
    return group.type


def _boots_with_pass_through(box: Box) -> bool:
    return bool(_BOOTED & {*text_of(box.snapshot.known_host.cmdline).split()})


def translated_devices(box: Box) -> list[Device]:
    """GPUs and HCAs whose DMA addresses an IOMMU translates, as an obstacle to what they send each other."""
    if is_coherent(box):
        return []
    types = [(device, group_type(box, device.bdf)) for device in (*box.topology.gpus, *box.topology.adapters)]
    return [device for device, type_ in types if isinstance(type_, str) and type_ != PASS_THROUGH]


def disable_translation(box: Box) -> str:
    """The remedy. The type of a single group can be changed only while no driver is bound to its devices
    (Linux Documentation/ABI/testing/sysfs-kernel-iommu_groups).
    """
    return remedy_of("gdr.iommu", "passes through") if _boots_with_pass_through(box) else remedy_of("gdr.iommu")


def reason_to_keep_acs(box: Box) -> str:
    """Why ACS must not be disabled yet: IOMMU or virtual machines that may need it are not known; empty if known."""
    types = (group_type(box, device.bdf) for device in (*box.topology.gpus, *box.topology.adapters))
    if (unread := next((type_ for type_ in types if isinstance(type_, Missing)), None)) is not None:
        return f"whether an IOMMU translates addresses is unknown ({unread.where}: {unread})"
    gap = next(hypervisor_gaps(box), None)
    return "" if gap is None else f"whether virtual machines run here is unknown ({gap.where}: {gap})"


MOST_NAMED = 4
REDIRECT = 0x3C
"""Request and completion redirect, upstream forwarding, egress control."""


@or_gap
def ports_between(box: Box, a: Device, b: Device) -> list[str]:
    """Bdfs of the bridges whose ACS affects a pair: all below the nearest common one, and that one where it is not a
    root port.
    """
    ours, theirs = need(data_paths(a, b))
    shared = shared_bridges(ours, theirs)
    common = [ours[shared]] if shared and not _is_root_port(box, ours[shared]) else []
    return [*common, *ours[1 + shared : -1], *theirs[1 + shared : -1]]


@or_gap
def redirecting_ports(box: Box, a: Device, b: Device) -> list[str] | Missing:
    """Bdfs of the ports between two devices that redirect; Missing where none does and one cannot be read."""
    ports = need(ports_between(box, a, b))
    redirecting = [port for port in ports if redirects(box, port)]
    gap = next((acs for port in ports if isinstance(acs := acs_of(box, port), Missing)), None)
    return redirecting if redirecting or gap is None else gap


def redirects(box: Box, port: str) -> bool:
    """Is one of the redirect bits known to be set?"""
    acs = acs_of(box, port)
    return isinstance(acs, Acs) and bool(acs.control & REDIRECT)


@or_gap
def acs_of(box: Box, bdf: str) -> Acs | Missing | None:
    """The ACS registers of a port; None without the capability, Missing where they cannot be read."""
    return need(config_space_of(box, bdf)).acs


@or_gap
def config_space_of(box: Box, bdf: str) -> ConfigSpace | Missing:
    """The configuration space of a GPU, HCA, NVSwitch or bridge."""
    unrecorded = Missing(Gap.UNRECORDED, pci_file(bdf, "config"))
    return next((row for row in need(box.snapshot.config_space) if row.bdf == bdf), unrecorded)


def _is_root_port(box: Box, bdf: str) -> bool:
    """By its PCI Express capability, else by its path: only the root bus is above it."""
    space = config_space_of(box, bdf)
    express = space if isinstance(space, Missing) else space.express
    if isinstance(express, Missing) or isinstance(express.port_type, Missing):
        function = box.topology.functions.get(bdf)
        return function is not None and len(rows(function.path)) == 2
    return express.port_type is PortType.ROOT_PORT


def disable_acs(box: Box, *ports: str) -> str:
    """The remedy: commands that clear the redirect bits alone; no command where IOMMU or virtual machines may need
    them (setpci(8)).
    """
    if rules := acs_rules(box):
        own = [f"{rules[port].bits}@{port}" for port in ports if port in rules and not rules[port].is_kernels]
        what = "" if len(own) > MOST_NAMED else f" ({';'.join(own)})"
        return remedy_of("gdr.acs", "rules" if own else "rules of the kernel").format(what)
    if reason := reason_to_keep_acs(box):
        return remedy_of("gdr.acs", "to keep").format(reason)
    commands = "; ".join(f"setpci -s {port} ECAP_ACS+0x6.w=0:3c" for port in ports)
    return remedy_of("gdr.acs", "to clear").format(commands)


def between(box: Box, a: Device, b: Device) -> Iterator[Component]:
    """What joins two GPUs, their NVLinks or the settings and the path of PCIe, then the GPUs."""
    if box.topology.link(a, b).nvlinks:
        yield nvlinks_between(box, a, b)
    else:
        yield from blocking_settings(box, a, b)
        yield peer_path(a, b)
    yield device_part(box, a)
    yield device_part(box, b)


def blocking_settings(box: Box, a: Device, b: Device) -> Iterator[Component]:
    """The settings between two GPUs, the IOMMU first: while it translates the kernel needs the ACS redirection."""
    if {a, b} & {*translated_devices(box)}:
        yield host_part("IOMMU setting")
    ports = redirecting_ports(box, a, b)
    if isinstance(ports, Missing) or not ports:
        return
    yield from map(bridge_setting, ports)
    above = {path[-2] for gpu in box.topology.gpus if len(path := rows(gpu.path)) > 2}
    if all(redirects(box, port) for port in above):  # then firmware or kernel enabled ACS everywhere
        yield host_part("ACS setting")


def most_blocking_settings(box: Box, bridge: str | None = None) -> list[Component]:
    """The settings that block the most pairs first, of all pairs without NVLink, or of those below one bridge."""
    gpus = [gpu for gpu in box.topology.gpus if bridge is None or is_below(gpu, bridge)]
    pairs = [(a, b) for a, b in combinations(gpus, 2) if not box.topology.link(a, b).nvlinks]
    counted = Counter(setting for a, b in pairs for setting in blocking_settings(box, a, b))
    return [setting for setting, _ in counted.most_common()]
