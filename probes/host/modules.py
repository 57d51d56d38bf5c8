"""Kernel modules for GPUs, RDMA and GPUDirect: loaded or not, version, users."""

from __future__ import annotations

from dgxcheck.facts.host import MemoryPeer, Module, Modules
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.sysfs import MEMORY_PEERS
from dgxcheck.source.protocol import Source
from probes.ask import ask
from probes.host.parse_driver import driver_params, driver_version
from probes.parse_scalar import decimal, line

WATCHED = (
    "nvidia",
    "nvidia_uvm",
    "nvidia_modeset",
    "nvidia_drm",
    "nvidia_peermem",
    "nv_peer_mem",
    "nvidia_fs",
    "gdrdrv",
    "nouveau",
    "mlx5_core",
    "mlx5_ib",
    "mlx4_core",
    "mlx4_ib",
    "ib_core",
    "ib_uverbs",
    "vfio_pci",
    "kvm_intel",
    "kvm_amd",
    "mdev",
    "nvidia_vgpu_vfio",
)
_MODULES = "/sys/module"
_DRIVER = "/proc/driver/nvidia"


def probe(source: Source) -> Modules:
    """``/sys/module``, ``/sys/kernel/mm/memory_peers``, ``/proc/driver/nvidia``."""
    names = source.names(_MODULES)
    loaded = names if isinstance(names, Missing) else frozenset(names)
    return Modules(
        modules=tuple(_module(source, name, loaded) for name in WATCHED),
        ib_core_holders=source.names(f"{_MODULES}/ib_core/holders"),
        memory_peers=_peers(source),
        driver=ask(source, f"{_DRIVER}/version", driver_version),
        driver_params=ask(source, f"{_DRIVER}/params", driver_params),
    )


def _module(source: Source, name: str, loaded: frozenset[str] | Missing) -> Module:
    base = f"{_MODULES}/{name}"
    if isinstance(loaded, Missing) or name not in loaded:
        gap = loaded if isinstance(loaded, Missing) else Missing(Gap.ABSENT, base, "not loaded")
        known = loaded if isinstance(loaded, Missing) else False
        return Module(name=name, loaded=known, version=gap, refcnt=gap, state=gap)
    return Module(
        name=name,
        loaded=True,
        version=ask(source, f"{base}/version", line),
        refcnt=ask(source, f"{base}/refcnt", decimal),
        state=ask(source, f"{base}/initstate", line),
    )


def _peers(source: Source) -> tuple[MemoryPeer, ...] | Missing:
    names = source.names(MEMORY_PEERS)
    if isinstance(names, Missing):
        return names
    return tuple(MemoryPeer(name=name, version=ask(source, f"{MEMORY_PEERS}/{name}/version", line)) for name in names)
