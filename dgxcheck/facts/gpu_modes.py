"""Modes that an administrator sets on a GPU, and states that ask for one."""

from __future__ import annotations

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class Fabric(Record):
    """A GPU's registration with the fabric manager of an NVSwitch machine (``nvmlGpuFabricInfo_t``)."""

    state: int | Missing
    """0 not supported, 1 not started, 2 in progress, 3 completed."""
    status: int | Missing
    """The ``nvmlReturn_t`` with which it completed."""
    clique_id: int | Missing
    cluster_uuid: str | Missing


class GpuModes(Record):
    """Modes of one GPU."""

    bdf: str
    persistence: bool | Missing
    compute_mode: int | Missing
    """``nvmlComputeMode_t``: 0 default, 1 exclusive thread, 2 prohibited, 3 exclusive process."""
    operation_mode: int | Missing
    """``nvmlGpuOperationMode_t``: 0 all on, 1 compute, 2 low double precision."""
    operation_mode_pending: int | Missing
    mig: bool | Missing
    mig_pending: bool | Missing
    display_mode: bool | Missing
    """Is a display connected?"""
    display_active: bool | Missing
    recovery_action: int | Missing
    """0 none, 1 reset, 2 reboot, 3 drain P2P, 4 drain and reset, 5 recover IMEX domain, 6 bus reset,
    7 system reboot."""
    fabric: Fabric | Missing
