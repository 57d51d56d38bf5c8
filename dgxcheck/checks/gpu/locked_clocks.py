"""Which GPUs have locked clocks besides application clocks."""

from __future__ import annotations

from dgxcheck.checks.engine.box import Box
from dgxcheck.facts.gpu import GpuBoard

_VOLTA = 5
"""``nvmlDeviceArchitecture_t``"""
_VOLTA_CAPABILITY = 7


def can_lock_clocks(box: Box, bdf: str) -> bool:
    """``nvidia-smi -lgc`` and ``-rgc`` exist from Volta on (nvidia-smi(1)); true where that is not known."""
    board = box.gpu(bdf).board
    if not isinstance(board, GpuBoard):
        return True
    if isinstance(board.architecture, int):
        return board.architecture >= _VOLTA
    capability = board.compute_capability
    return capability[0] >= _VOLTA_CAPABILITY if isinstance(capability, tuple) else True
