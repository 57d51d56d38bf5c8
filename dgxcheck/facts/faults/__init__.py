"""What can be wrong, in one table: causes, actions and urgency follow from its rows, never from a message."""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.facts.faults.devices import Gpu, Links
from dgxcheck.facts.faults.host import Driver, Host
from dgxcheck.facts.faults.kind import FaultKind


class Fault(Driver, Gpu, Links, Host):
    """Every kind of fault by its name: ``Fault.GPU_LOST``."""


EVERY_FAULT: tuple[FaultKind, ...] = tuple(
    kind for table in Fault.__bases__ for kind in vars(table).values() if isinstance(kind, FaultKind)
)
"""In the order of the manual page; of several steps for one component those of the first count."""
BY_WORD: Mapping[str, FaultKind] = {kind.word: kind for kind in EVERY_FAULT}

MODULES_REFUSED = frozenset({Fault.MODULE_REFUSED, Fault.MODULE_UNSIGNED, Fault.MODULE_NOT_BUILT})
"""The driver is not loaded, and the kernel says why."""
GPU_DEAD = frozenset({
    Fault.GPU_LOST, Fault.GPU_NOT_STARTED, Fault.GPU_UNPOWERED, Fault.GPU_REFUSED, Fault.GPU_UNRECOGNISED,
    Fault.START_MEMORY,
})  # fmt: skip
DEVICE_DEAD = GPU_DEAD | {Fault.HCA_NOT_STARTED, Fault.HCA_UNRESPONSIVE, Fault.HCA_LOST}
"""The device as a whole does not work: nothing resets it, and what else is wrong with it follows from that."""
SILENT = DEVICE_DEAD | {Fault.UNPLUGGED}
"""The same, whatever the device is: an Ethernet adapter, the controller of a disk."""
UNRESPONSIVE = DEVICE_DEAD | {Fault.NVSWITCH_MISSING}
"""Of one device: it answers nothing."""
DEVICE_ABSENT = frozenset({Fault.GPU_MISSING, Fault.HCA_MISSING})
"""A device that should be present is not."""
