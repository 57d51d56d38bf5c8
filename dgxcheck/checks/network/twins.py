"""Which ports are expected to be alike: those in the same place of adapters of one model in the same role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.network.hcas import hcas
from dgxcheck.facts.infiniband import IbDevice, IbPort
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.topology.classes import NEAR

LEAST = 3
"""Fewer others make no majority: two adapters of one model may serve two networks."""


def role(box: Box, device: IbDevice) -> tuple[Hashable, ...] | None:
    """Model, board, function number and functions of its card, and whether a GPU shares its PCIe switch; None where the
    model or the place is not known.

    A card for storage is often of the same chip as those for computing, but on another board, or behind no switch.
    """
    if isinstance(device.bdf, Missing) or isinstance(device.hca_type, Missing):
        return None
    card, _, function = device.bdf.rpartition(".")
    listed = hcas(box)
    bdfs = [each.bdf for each in rows(listed) if isinstance(each.bdf, str)]
    functions = sum(bdf.startswith(f"{card}.") for bdf in bdfs)
    pci = box.topology.functions.get(device.bdf)
    board = None if pci is None else tuple(
        None if isinstance(each, Missing) else each for each in (pci.device, pci.subsystem_vendor, pci.subsystem_device)
    )  # fmt: skip
    nic = box.topology.device(device.bdf)
    near = nic is not None and any(box.topology.link(gpu, nic).pci in NEAR for gpu in box.topology.gpus)
    return device.hca_type, board, function, functions, near


def twins(
    box: Box, device: IbDevice, port: IbPort, listed: list[tuple[IbDevice, IbPort]]
) -> list[tuple[IbDevice, IbPort]]:
    """The ports of the same number on the other adapters in the same role."""
    own = role(box, device)
    return [
        (other, each) for other, each in listed
        if other is not device and each.port == port.port and own is not None and role(box, other) == own
    ]  # fmt: skip


def odd_link_layer(box: Box, device: IbDevice, port: IbPort, listed: list[tuple[IbDevice, IbPort]]) -> str | None:
    """The link layer that three quarters of at least three twins have, where this port has another; else None."""
    layers = [each.link_layer for _, each in twins(box, device, port, listed) if isinstance(each.link_layer, str)]
    if len(layers) < LEAST or isinstance(port.link_layer, Missing):
        return None
    usual, count = Counter(layers).most_common(1)[0]
    return usual if usual != port.link_layer and 4 * count >= 3 * len(layers) else None
