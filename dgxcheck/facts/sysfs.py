"""Folders of sysfs that more than one layer names."""

from __future__ import annotations

PCI_DEVICES = "/sys/bus/pci/devices"
PCI_SLOTS = "/sys/bus/pci/slots"
INFINIBAND = "/sys/class/infiniband"
BLOCK = "/sys/class/block"
DMI = "/sys/class/dmi/id"
SMBIOS = "/sys/firmware/dmi/tables/DMI"
NODES = "/sys/devices/system/node"
EDAC = "/sys/devices/system/edac/mc"
MEMORY_PEERS = "/sys/kernel/mm/memory_peers"
SERVICE_GROUPS = ("/sys/fs/cgroup/system.slice", "/sys/fs/cgroup/systemd/system.slice")
"""Of cgroup v2, and of v1."""


def pci_file(bdf: str | None, name: str) -> str:
    """A file of a PCI function: ``/sys/bus/pci/devices/0000:06:00.0/numa_node``."""
    return f"{PCI_DEVICES}/{bdf}/{name}"
