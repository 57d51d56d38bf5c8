"""The architecture of a GPU: NVML's, else by its compute capability or the name of its board.

Imported text often has the name only; the meaning of Xids and the extent of a GPU reset depend on the architecture.
"""

from __future__ import annotations

from collections.abc import Mapping

from dgxcheck.components.gpu_view import GpuView
from dgxcheck.facts.gpu import GpuBoard
from dgxcheck.facts.missing import BadInput, Missing
from dgxcheck.topology.model import Machine
from dgxcheck.xid.architecture import NAMES, architecture_of

_BY_CAPABILITY: Mapping[int, str] = {3: "kepler", 5: "maxwell", 6: "pascal", 9: "hopper", 10: "blackwell"}
"""Major numbers that belong to one architecture; 7 and 8 depend on the minor one."""


def architecture(machine: Machine, bdf: str) -> int | None:
    """``nvmlDeviceArchitecture_t``; None if unknown."""
    view = GpuView(machine.snapshot, bdf)
    board = view.board
    if isinstance(board, GpuBoard):
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
