"""What the reset of an adapter takes down too: its other functions, and GPUs whose PCIe switch is a part of it.

A ConnectX-8 is the switch of a GPU on HGX B300 and of a Direct NIC's (linux-rdma/rdma-core kernel-boot/rdma_topo);
``mlxfwreset --sync 2`` resets such a switch with its adapter (MFT 4.33 release notes).
"""

from __future__ import annotations

from collections.abc import Collection

from dgxcheck.facts.bdf import card_of
from dgxcheck.facts.ids import MELLANOX, PCI_BRIDGE
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Topology


def gpus_behind(topology: Topology, adapters: Collection[str | None]) -> tuple[str, ...]:
    """Names of the GPUs below a bridge that the adapter, or its DMA function, stands below too and that is its make."""
    ends = [function for bdf, function in topology.functions.items() if bdf in adapters]
    ends += [device.dma for device in topology.devices if device.dma is not None and device.bdf in adapters]
    bridges = {
        bdf for end in ends if not isinstance(end.path, Missing) and end.vendor == MELLANOX
        for bdf in end.path[1:-1] if _is_own(topology, bdf)
    }  # fmt: skip
    return tuple(
        gpu.name for gpu in topology.gpus if not isinstance(gpu.path, Missing) and not bridges.isdisjoint(gpu.path)
    )


def functions_beside(topology: Topology, adapters: Collection[str | None]) -> tuple[str, ...]:
    """Names of the other PCI functions of these adapters: ``mstfwreset`` resets the chip that they share."""
    cards = {card_of(bdf) for bdf in adapters if bdf is not None}
    return tuple(
        device.name for device in topology.adapters
        if device.bdf is not None and device.bdf not in adapters and card_of(device.bdf) in cards
    )  # fmt: skip


def _is_own(topology: Topology, bdf: str) -> bool:
    bridge = topology.functions.get(bdf)
    code = None if bridge is None else bridge.class_code
    return bridge is not None and bridge.vendor == MELLANOX and isinstance(code, int) and code >> 8 == PCI_BRIDGE
