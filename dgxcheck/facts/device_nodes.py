"""Device nodes that programs on GPUs and HCAs open."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class DeviceNode(Record):
    """One node under ``/dev``."""

    path: str
    opens: bool | Missing
    """False where this user may not open it; absent where there is no such node."""


class DeviceNodes(Record):
    """Nodes of the NVIDIA driver and of RDMA user space."""

    control: DeviceNode
    """``/dev/nvidiactl``"""
    uvm: DeviceNode
    """``/dev/nvidia-uvm``: CUDA needs it; ``nvidia-modprobe`` makes it when it is first needed."""
    gpus: tuple[DeviceNode, ...] | Missing
    """``/dev/nvidia<minor>`` from 0, as many as PCI has GPUs."""
    verbs: tuple[DeviceNode, ...] | Missing
    """``/dev/infiniband/uverbs<number>``"""
