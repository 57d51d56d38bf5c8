"""PCI functions and how they hang together."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class PciFunction(Record):
    """One PCI function's wiring, from ``/sys/bus/pci/devices/<bdf>``."""

    bdf: str
    path: tuple[str, ...] | Missing
    """Root bus (``pci0000:00``), then every bridge's bdf, then the own bdf."""
    class_code: int | Missing
    vendor: int | Missing
    device: int | Missing
    subsystem_vendor: int | Missing
    subsystem_device: int | Missing
    link_gen: int | Missing
    link_width: int | Missing
    max_link_gen: int | Missing
    max_link_width: int | Missing
    numa_node: int | Missing
    """As the kernel gives it; -1 means that the firmware did not say."""
    local_cpulist: str | Missing
    driver: str | Missing | None
    """Name of the bound driver, None where none is bound."""
