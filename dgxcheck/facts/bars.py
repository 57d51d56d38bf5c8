"""Base address registers: the windows through which the host and other devices reach a PCI device."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class Bar(Record):
    """One line of ``/sys/bus/pci/devices/<bdf>/resource``."""

    line: int
    """0 to 5 as the kernel counts (a 64-bit one takes two), 6 the expansion ROM."""
    assigned: bool
    """False where the firmware and the kernel found no room for it."""
    start: int
    size: int | Missing
    is_io: bool
    is_64bit: bool
    is_prefetchable: bool


class PciBars(Record):
    """The BARs of a GPU, HCA or NVSwitch; lines that are all zeros are absent and left out."""

    bdf: str
    bars: tuple[Bar, ...] | Missing
    bar1: Bar | Missing
    """The largest 64-bit prefetchable one: NVIDIA's BAR1 has line 1 before Hopper, line 2 since."""
