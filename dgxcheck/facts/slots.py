"""Physical PCI slots as the firmware names them."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class Slot(Record):
    """One ``/sys/bus/pci/slots/<name>``."""

    name: str
    address: str | Missing
    """``0000:06:00``: domain, bus and device in the slot, without a function."""
