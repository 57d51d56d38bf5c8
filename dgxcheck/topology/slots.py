"""The physical slot of a device, from ``/sys/bus/pci/slots``."""

from __future__ import annotations

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.pci import Slot
from dgxcheck.topology.model import Device


def slot_of(device: Device, slots: tuple[Slot, ...] | Missing) -> str | Missing:
    """The slot of a device, else of the nearest bridge above it: a board may carry a switch of its own (K80)."""
    if isinstance(slots, Missing):
        return slots
    if isinstance(device.path, Missing):
        return device.path
    for bdf in reversed(device.path[1:]):
        for slot in slots:
            if isinstance(slot.address, str) and bdf.startswith(f"{slot.address}."):
                return slot.name
    unread = (slot.address for slot in slots if isinstance(slot.address, Missing))
    return next(
        unread, Missing(Gap.ABSENT, "/sys/bus/pci/slots", f"the firmware lists no slot for this {_KINDS[device.kind]}")
    )


_KINDS = {"gpu": "GPU", "nic": "NIC"}
