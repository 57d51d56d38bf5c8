"""One view of a GPU: its records in all fields of a snapshot, and its architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dgxcheck.facts.missing import BadInput, Gap, Missing
from dgxcheck.facts.nvml.gpu import GpuBoard, Nvml
from dgxcheck.topology.model import Surveyed
from dgxcheck.xid.table import NAMES, architecture_of

if TYPE_CHECKING:
    from dgxcheck.facts.nvml.gpu import Gpu, GpuActivity, GpuBoard, GpuModes
    from dgxcheck.facts.nvml.readings import GpuClocks, GpuCounters, GpuEcc, GpuMemory, GpuPcie, GpuPower, GpuThermal
    from dgxcheck.survey import Snapshot


class _Row(Protocol):
    @property
    def bdf(self) -> str: ...


R = TypeVar("R", bound=_Row)


def row_of(rows: tuple[R, ...] | Missing, bdf: str | None) -> R | Missing:
    """One GPU's record among those of all GPUs; the gap where there is none."""
    if isinstance(rows, Missing):
        return rows
    return next((row for row in rows if row.bdf == bdf), Missing(Gap.UNRECORDED, str(bdf), "no facts of this GPU"))


def _record(field: str) -> Any:
    """The GPU's record in that field of the snapshot."""
    return property(lambda view: row_of(getattr(view._snapshot, field), view.bdf))


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
        return row_of(nvml.gpus if isinstance(nvml, Nvml) else nvml, self.bdf)

    board: GpuBoard | Missing = _record("gpu_board")
    pcie: GpuPcie | Missing = _record("gpu_pcie")
    memory: GpuMemory | Missing = _record("gpu_memory")
    ecc: GpuEcc | Missing = _record("gpu_ecc")
    counters: GpuCounters | Missing = _record("gpu_counters")
    clocks: GpuClocks | Missing = _record("gpu_clocks")
    power: GpuPower | Missing = _record("gpu_power")
    thermal: GpuThermal | Missing = _record("gpu_thermal")
    modes: GpuModes | Missing = _record("gpu_modes")
    processes: GpuActivity | Missing = _record("gpu_processes")


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
