"""The topology of a box: its GPUs and NICs, one link per pair of them, and notes on both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from dgxcheck.facts.missing import Missing
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record

PciClass = Literal["PIX", "PXB", "PHB", "NODE", "SOC"]


class Device(Record):
    """A GPU or NIC; a field that does not apply to the kind is None."""

    name: str
    """``GPUn`` (NVML's index, or bus order without NVML), ``GPU@<bdf>``, or the InfiniBand name."""
    kind: Literal["gpu", "nic"]
    bdf: str | None
    """None for an InfiniBand device without a PCI function (``scif0``)."""
    index: int | None
    """NVML's index; None for a GPU that NVML does not list."""
    uuid: str | Missing | None
    numa_node: int | Missing
    """Effective node, see ``classes.numa_node``."""
    cpu_affinity: str | Missing
    """The kernel's ``local_cpulist``."""
    gpu_numa_id: int | Missing | None
    is_vf: bool | Missing | None
    nvlink_positions: int | Missing | None
    """NVLink positions of this GPU that the driver supports, up or down; 0 on a board without NVLink."""
    path: tuple[str, ...] | Missing
    """Root bus, bridges, own bdf."""
    function: PciFunction | None


class Link(Record):
    """What joins two devices; ``a`` stands before ``b`` in the order of the devices."""

    a: str
    b: str
    pci: PciClass | None
    pci_reason: str
    """Why ``pci`` is None; else empty."""
    nvlinks: int | None
    """NVLinks up between the two; None where unknown."""
    nvlink_reason: str
    nvlink_generation: int | None
    """Lowest generation among those links; None without links or where the driver does not report it."""
    switched: bool
    """True where the NVLinks run through NVSwitches."""

    @property
    def label(self) -> str:
        """``NV#`` where links are up, else the PCI class, else ``?``."""
        return f"NV{self.nvlinks}" if self.nvlinks else self.pci or "?"


class Topology(Record):
    """The whole box: GPUs, then NICs, and one link per unordered pair of them."""

    devices: tuple[Device, ...]
    links: tuple[Link, ...]
    headline: str
    """Why NVLink is unknown, as a sentence; else empty."""
    notes: tuple[str, ...]
    gaps: tuple[Missing, ...]
    """Facts that should be available and are not; those of single links are in the links."""
    functions: Mapping[str, PciFunction]
    """Every PCI function by bdf: the bridges of the paths are among them."""

    @property
    def gpus(self) -> tuple[Device, ...]:
        return tuple(device for device in self.devices if device.kind == "gpu")

    def device(self, name: str) -> Device | None:
        """The device of that name or bdf."""
        return next((device for device in self.devices if name in (device.name, device.bdf)), None)

    def link(self, a: Device, b: Device) -> Link:
        """What joins two different devices."""
        ends = {a.name, b.name}
        return next(link for link in self.links if {link.a, link.b} == ends)

    def matrix(self) -> dict[tuple[str, str], Link]:
        """Every link under both orders of its ends."""
        return {ends: link for link in self.links for ends in ((link.a, link.b), (link.b, link.a))}
