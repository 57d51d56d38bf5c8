"""Settings that block P2P between two GPUs that PCIe joins: the IOMMU's, and ACS of the ports between them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.pcie.acs import redirecting_ports, redirects
from dgxcheck.checks.pcie.iommu import translated_devices
from dgxcheck.components.component import Component, host_part
from dgxcheck.components.locate import bridge_setting, device_part, is_below, nvlinks_between, peer_path
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device


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
    if _acs_above_all_gpus(box):
        yield host_part("ACS setting")


def _acs_above_all_gpus(box: Box) -> bool:
    """Do the ports above all GPUs redirect? Then firmware or kernel enabled ACS everywhere."""
    above = {gpu.path[-2] for gpu in box.topology.gpus if not isinstance(gpu.path, Missing) and len(gpu.path) > 2}
    return all(redirects(box, port) for port in above)


def most_blocking_settings(box: Box, bridge: str | None = None) -> list[Component]:
    """The settings that block the most pairs first, of all pairs without NVLink, or of those below one bridge."""
    gpus = [gpu for gpu in box.topology.gpus if bridge is None or is_below(gpu, bridge)]
    pairs = [(a, b) for a, b in combinations(gpus, 2) if not box.topology.link(a, b).nvlinks]
    counted = Counter(setting for a, b in pairs for setting in blocking_settings(box, a, b))
    return [setting for setting, _ in counted.most_common()]
