"""Physical PCI slots as the firmware names them."""

from __future__ import annotations

from dataclasses import dataclass

from dgxcheck.reading import Missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """One ``/sys/bus/pci/slots/<name>``."""

    name: str
    address: str | Missing
    """``0000:06:00``: domain, bus and device in the slot, without a function."""
