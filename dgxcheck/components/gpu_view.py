"""One view of a GPU: its records in all fields of a snapshot, and its architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol, TypeVar

from dgxcheck.facts.gpu import GpuBoard, Nvml
from dgxcheck.facts.missing import BadInput, Gap, Missing
from dgxcheck.topology.model import Surveyed
from dgxcheck.xid.table import NAMES, architecture_of

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


_BY_CAPABILITY: Mapping[int, str] = {3: "kepler", 5: "maxwell", 6: "pascal", 9: "hopper", 10: "blackwell"}
"""Major numbers that belong to one architecture; 7 and 8 depend on the minor one."""


def architecture(machine: Surveyed, bdf: str) -> int | None:
    """``nvmlDeviceArchitecture_t``; None if unknown."""
    view = GpuView(machine.snapshot, bdf)
    if isinstance(board := view.board, GpuBoard):
        if isinstance(board.architecture, int):
            return board.architecture
        if isinstance(board.compute_capability, tuple):
            return _of_capability(*board.compute_capability)
    return None if isinstance(view.listed, Missing) else _of_name(view.listed.name)


def _of_capability(major: int, minor: int) -> int:
    if major == 7:
        return NAMES["turing" if minor >= 5 else "volta"]
    if major == 8:
        return NAMES["ada" if minor == 9 else "ampere"]
    return NAMES[_BY_CAPABILITY.get(major, "blackwell" if major > 10 else "kepler")]


def _of_name(name: str | Missing) -> int | None:
    try:
        return None if isinstance(name, Missing) else architecture_of(name)[1]
    except BadInput:
        return None
