"""Run the probes that a command needs over one source."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

import probes
from dgxcheck.facts.missing import Gap, Json, Missing, rows
from dgxcheck.facts.record import Record

if TYPE_CHECKING:
    from dgxcheck.facts.host import (
        BlockDevice,
        DeviceNodes,
        Host,
        Imex,
        MdArray,
        Memlock,
        Modules,
        NetInterface,
        Storage,
        Unit,
    )
    from dgxcheck.facts.infiniband import IbDevice, IbDevicePorts
    from dgxcheck.facts.kernel_log import KernelLog
    from dgxcheck.facts.measurement import Measurement
    from dgxcheck.facts.memory import Dimm, MemoryController, NumaMemory, NumaNode
    from dgxcheck.facts.nvml.gpu import Gpu, GpuActivity, GpuAffinity, GpuBoard, GpuModes, Nvml
    from dgxcheck.facts.nvml.nvlink import GpuPair, NvLink, NvLinkCapability, NvLinkErrors, NvLinkRate, P2pStatus
    from dgxcheck.facts.nvml.readings import GpuClocks, GpuCounters, GpuEcc, GpuMemory, GpuPcie, GpuPower, GpuThermal
    from dgxcheck.facts.pci import AerDevice, ConfigSpace, Iommu, PciBars, PciFunction, Slot, Vpd
    from dgxcheck.facts.tool_outputs import NvidiaSmiTopo, ToolReport
    from dgxcheck.source.protocol import Source

WIRING = probes.WIRING
COUNTERS = probes.COUNTERS
ALL = probes.ALL
NO_DEVICES = ("pci_names", "kernel_log", "measurement", "stated", "tool_reports")
"""Fields of the snapshot that hold events, figures and what other tools printed."""
_UNASKED = Missing(Gap.UNASKED, "survey")


class Snapshot(Record):
    """Facts of one machine at one time, a field per probe; a probe that was not run is ``unasked``."""

    pci: tuple[PciFunction, ...] | Missing = _UNASKED
    vpd: tuple[Vpd, ...] | Missing = _UNASKED
    numa: tuple[NumaNode, ...] | Missing = _UNASKED
    infiniband: tuple[IbDevice, ...] | Missing = _UNASKED
    gpu: Nvml | Missing = _UNASKED
    nvlink: tuple[NvLink, ...] | Missing = _UNASKED
    gpu_pairs: tuple[GpuPair, ...] | Missing = _UNASKED
    pci_names: Mapping[str, str | Missing] | Missing = _UNASKED
    numa_memory: tuple[NumaMemory, ...] | Missing = _UNASKED
    slots: tuple[Slot, ...] | Missing = _UNASKED
    empty_ports: Mapping[str, tuple[str, ...] | Missing] | Missing = _UNASKED
    """The paths of PCI bridges that lead to no function of interest."""
    bars: tuple[PciBars, ...] | Missing = _UNASKED
    aer: tuple[AerDevice, ...] | Missing = _UNASKED
    config_space: tuple[ConfigSpace, ...] | Missing = _UNASKED
    iommu: Iommu | Missing = _UNASKED
    ib_ports: tuple[IbDevicePorts, ...] | Missing = _UNASKED
    modules: Modules | Missing = _UNASKED
    host: Host | Missing = _UNASKED
    edac: tuple[MemoryController, ...] | Missing = _UNASKED
    dimms: tuple[Dimm, ...] | Missing = _UNASKED
    network: tuple[NetInterface, ...] | Missing = _UNASKED
    storage: Storage | Missing = _UNASKED
    device_nodes: DeviceNodes | Missing = _UNASKED
    memlock: Memlock | Missing = _UNASKED
    units: tuple[Unit, ...] | Missing = _UNASKED
    imex: Imex | Missing = _UNASKED
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
    nvlink_rate: tuple[NvLinkRate, ...] | Missing = _UNASKED
    nvlink_errors: tuple[NvLinkErrors, ...] | Missing = _UNASKED
    p2p: tuple[P2pStatus, ...] | Missing = _UNASKED
    measurement: tuple[Measurement, ...] | Missing = _UNASKED
    stated: NvidiaSmiTopo | Missing = _UNASKED
    tool_reports: tuple[ToolReport, ...] | Missing = _UNASKED

    @property
    def known_host(self) -> Host:
        """The host; where it could not be read one of which every fact is that gap."""
        if not isinstance(self.host, Missing):
            return self.host
        from dgxcheck.facts.host import unknown_host

        return unknown_host(self.host)

    @property
    def listed_gpus(self) -> tuple[Gpu, ...]:
        """Those that NVML lists."""
        return () if isinstance(self.gpu, Missing) else self.gpu.gpus

    @property
    def arrays(self) -> tuple[MdArray, ...]:
        """The host's arrays (md); none where they are not known."""
        return () if isinstance(self.storage, Missing) else rows(self.storage.arrays)

    @property
    def driver_version(self) -> str | Missing:
        """As NVML has it."""
        return self.gpu if isinstance(self.gpu, Missing) else self.gpu.driver_version

    @property
    def disks(self) -> tuple[BlockDevice, ...] | Missing:
        return self.storage if isinstance(self.storage, Missing) else self.storage.disks


def survey(source: Source, names: Iterable[str]) -> Snapshot:
    """Ask the source what the named probes want to know; a probe that fails is a gap and stops no other."""
    return Snapshot(**{name: _probed(source, name) for name in names})


def log_facts(lines: Iterable[str]) -> KernelLog | Missing:
    """Lines of a kernel log as a source gives them, ``<seconds since boot>;<message>``, as facts."""
    from dgxcheck.source.protocol import Origin
    from dgxcheck.source.recording.replay import RecordedSource

    kept: dict[str, Json] = {str(number): line for number, line in enumerate(lines)}
    return survey(RecordedSource({"kmsg": kept}, Origin("recording")), ("kernel_log",)).kernel_log


def _probed(source: Source, name: str) -> Any:
    probe = getattr(import_module(f"probes.{probes.MODULES[name]}"), name)
    try:
        return probe(source)
    except Exception as error:  # noqa: BLE001 -- one broken probe must not hide the facts of the others
        return Missing(Gap.GARBLED, f"probe {name}", f"{type(error).__name__}: {error}")
