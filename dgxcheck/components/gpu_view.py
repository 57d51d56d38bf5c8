"""One view of a GPU: its records in all fields of a snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.missing import Gap, Missing

if TYPE_CHECKING:
    from dgxcheck.facts.gpu import (
        Gpu,
        GpuActivity,
        GpuBoard,
        GpuClocks,
        GpuCounters,
        GpuEcc,
        GpuMemory,
        GpuModes,
        GpuPcie,
        GpuPower,
        GpuThermal,
    )
    from dgxcheck.survey import Snapshot


class _Row(Protocol):
    @property
    def bdf(self) -> str: ...


R = TypeVar("R", bound=_Row)


class GpuView:
    """Each member is the GPU's record, or the gap that stands for it: of the whole field, else ``unrecorded``."""

    __slots__ = ("_snapshot", "bdf")

    def __init__(self, snapshot: Snapshot, bdf: str | None) -> None:
        self.bdf = bdf
        self._snapshot = snapshot

    @property
    def listed(self) -> Gpu | Missing:
        """The GPU in NVML's list."""
        nvml = self._snapshot.gpu
        return self._row(nvml.gpus if isinstance(nvml, Nvml) else nvml)

    @property
    def board(self) -> GpuBoard | Missing:
        return self._row(self._snapshot.gpu_board)

    @property
    def pcie(self) -> GpuPcie | Missing:
        return self._row(self._snapshot.gpu_pcie)

    @property
    def memory(self) -> GpuMemory | Missing:
        return self._row(self._snapshot.gpu_memory)

    @property
    def ecc(self) -> GpuEcc | Missing:
        return self._row(self._snapshot.gpu_ecc)

    @property
    def counters(self) -> GpuCounters | Missing:
        return self._row(self._snapshot.gpu_counters)

    @property
    def clocks(self) -> GpuClocks | Missing:
        return self._row(self._snapshot.gpu_clocks)

    @property
    def power(self) -> GpuPower | Missing:
        return self._row(self._snapshot.gpu_power)

    @property
    def thermal(self) -> GpuThermal | Missing:
        return self._row(self._snapshot.gpu_thermal)

    @property
    def modes(self) -> GpuModes | Missing:
        return self._row(self._snapshot.gpu_modes)

    @property
    def processes(self) -> GpuActivity | Missing:
        return self._row(self._snapshot.gpu_processes)

    def _row(self, rows: tuple[R, ...] | Missing) -> R | Missing:
        if isinstance(rows, Missing):
            return rows
        unrecorded = Missing(Gap.UNRECORDED, str(self.bdf), "no facts of this GPU")
        return next((row for row in rows if row.bdf == self.bdf), unrecorded)
