"""Kernel modules that GPUs and RDMA depend on, peer-memory clients, and the NVIDIA driver's own word."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from dgxcheck.frozen import Record
from dgxcheck.reading import Missing


class Flavour(str, Enum):
    """Which kernel modules of NVIDIA are loaded; the open ones support Turing and newer only."""

    OPEN = "open"
    PROPRIETARY = "proprietary"


class Module(Record):
    """One ``/sys/module/<name>``."""

    name: str
    loaded: bool | Missing
    version: str | Missing
    refcnt: int | Missing
    state: str | Missing
    """``live``, ``coming``, ``going``; absent for what is built into the kernel."""


class MemoryPeer(Record):
    """One client in ``/sys/kernel/mm/memory_peers``: GPUDirect RDMA through peer memory."""

    name: str
    version: str | Missing


class NvidiaDriver(Record):
    """The first line of ``/proc/driver/nvidia/version``."""

    version: str
    flavour: Flavour


class Modules(Record):
    """What the kernel has loaded."""

    modules: tuple[Module, ...]
    """Every module of interest, loaded or not."""
    ib_core_holders: tuple[str, ...] | Missing
    """Modules that use ``ib_core``; a registered nvidia_peermem is one."""
    memory_peers: tuple[MemoryPeer, ...] | Missing
    driver: NvidiaDriver | Missing
    driver_params: Mapping[str, str] | Missing
    """``/proc/driver/nvidia/params``."""
