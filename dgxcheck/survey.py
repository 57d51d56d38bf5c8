"""Run the probes that a command needs over one source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import probes
from dgxcheck.frozen import Record, fields
from dgxcheck.reading import Gap, Missing

if TYPE_CHECKING:
    from dgxcheck.facts.aer import AerDevice
    from dgxcheck.facts.bars import PciBars
    from dgxcheck.facts.config_space import ConfigSpace
    from dgxcheck.facts.device_nodes import DeviceNodes
    from dgxcheck.facts.edac import MemoryController
    from dgxcheck.facts.gpu import Nvml
    from dgxcheck.facts.gpu_affinity import GpuAffinity
    from dgxcheck.facts.gpu_board import GpuBoard
    from dgxcheck.facts.gpu_clocks import GpuClocks
    from dgxcheck.facts.gpu_counters import GpuCounters
    from dgxcheck.facts.gpu_ecc import GpuEcc
    from dgxcheck.facts.gpu_memory import GpuMemory
    from dgxcheck.facts.gpu_modes import GpuModes
    from dgxcheck.facts.gpu_pcie import GpuPcie
    from dgxcheck.facts.gpu_power import GpuPower
    from dgxcheck.facts.gpu_processes import GpuActivity
    from dgxcheck.facts.gpu_thermal import GpuThermal
    from dgxcheck.facts.host import Host
    from dgxcheck.facts.ib_ports import IbDevicePorts
    from dgxcheck.facts.infiniband import IbDevice
    from dgxcheck.facts.iommu import Iommu
    from dgxcheck.facts.kernel_log import KernelLog
    from dgxcheck.facts.measurement import Measurement
    from dgxcheck.facts.memlock import Memlock
    from dgxcheck.facts.modules import Modules
    from dgxcheck.facts.network import NetInterface
    from dgxcheck.facts.numa import NumaMemory, NumaNode
    from dgxcheck.facts.nvlink import GpuPair, NvLink
    from dgxcheck.facts.nvlink_health import NvLinkCapability, NvLinkErrors
    from dgxcheck.facts.p2p import P2pStatus
    from dgxcheck.facts.pci import PciFunction
    from dgxcheck.facts.slots import Slot
    from dgxcheck.facts.stated import Stated
    from dgxcheck.facts.storage import Storage
    from dgxcheck.source.protocol import Source

WIRING = probes.WIRING
COUNTERS = probes.COUNTERS
ALL = probes.ALL
_UNASKED = Missing(Gap.UNASKED, "survey")


class Snapshot(Record):
    """Facts of one machine at one time, a field per probe; a probe that was not run is ``unasked``."""

    pci: tuple[PciFunction, ...] | Missing = _UNASKED
    numa: tuple[NumaNode, ...] | Missing = _UNASKED
    infiniband: tuple[IbDevice, ...] | Missing = _UNASKED
    gpu: Nvml | Missing = _UNASKED
    nvlink: tuple[NvLink, ...] | Missing = _UNASKED
    gpu_pairs: tuple[GpuPair, ...] | Missing = _UNASKED
    pci_names: Mapping[str, str | Missing] | Missing = _UNASKED
    numa_memory: tuple[NumaMemory, ...] | Missing = _UNASKED
    slots: tuple[Slot, ...] | Missing = _UNASKED
    bars: tuple[PciBars, ...] | Missing = _UNASKED
    aer: tuple[AerDevice, ...] | Missing = _UNASKED
    config_space: tuple[ConfigSpace, ...] | Missing = _UNASKED
    iommu: Iommu | Missing = _UNASKED
    ib_ports: tuple[IbDevicePorts, ...] | Missing = _UNASKED
    modules: Modules | Missing = _UNASKED
    host: Host | Missing = _UNASKED
    edac: tuple[MemoryController, ...] | Missing = _UNASKED
    network: tuple[NetInterface, ...] | Missing = _UNASKED
    storage: Storage | Missing = _UNASKED
    device_nodes: DeviceNodes | Missing = _UNASKED
    memlock: Memlock | Missing = _UNASKED
    kernel_log: KernelLog | Missing = _UNASKED
    gpu_board: tuple[GpuBoard, ...] | Missing = _UNASKED
    gpu_pcie: tuple[GpuPcie, ...] | Missing = _UNASKED
    gpu_memory: tuple[GpuMemory, ...] | Missing = _UNASKED
    gpu_ecc: tuple[GpuEcc, ...] | Missing = _UNASKED
    gpu_counters: tuple[GpuCounters, ...] | Missing = _UNASKED
    gpu_clocks: tuple[GpuClocks, ...] | Missing = _UNASKED
    gpu_power: tuple[GpuPower, ...] | Missing = _UNASKED
    gpu_thermal: tuple[GpuThermal, ...] | Missing = _UNASKED
    gpu_modes: tuple[GpuModes, ...] | Missing = _UNASKED
    gpu_processes: tuple[GpuActivity, ...] | Missing = _UNASKED
    gpu_affinity: tuple[GpuAffinity, ...] | Missing = _UNASKED
    nvlink_capability: tuple[NvLinkCapability, ...] | Missing = _UNASKED
    nvlink_errors: tuple[NvLinkErrors, ...] | Missing = _UNASKED
    p2p: tuple[P2pStatus, ...] | Missing = _UNASKED
    measurement: tuple[Measurement, ...] | Missing = _UNASKED
    stated: Stated | Missing = _UNASKED


def survey(source: Source, names: Iterable[str]) -> Snapshot:
    """Ask the source what the named probes want to know; a probe that fails is a gap and stops no other."""
    return Snapshot(**{name: _probed(source, name) for name in names})


def gaps(snapshot: Snapshot) -> tuple[Missing, ...]:
    """The probes of a snapshot that were asked and have nothing to show, by their reason."""
    values = (getattr(snapshot, name) for name in fields(snapshot))
    return tuple(value for value in values if isinstance(value, Missing) and value.gap is not Gap.UNASKED)


def _probed(source: Source, name: str) -> Any:
    probe = import_module(f"probes.{name}").probe
    try:
        return probe(source)
    except Exception as error:  # noqa: BLE001 -- one broken probe must not hide the facts of the others
        return Missing(Gap.GARBLED, f"probe {name}", f"{type(error).__name__}: {error}")
