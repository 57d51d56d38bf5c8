"""All probes that ask NVML."""

from __future__ import annotations

from collections.abc import Callable

from dgxcheck.source.protocol import Source
from probes import (
    gpu,
    gpu_affinity,
    gpu_board,
    gpu_clocks,
    gpu_counters,
    gpu_ecc,
    gpu_memory,
    gpu_modes,
    gpu_pairs,
    gpu_pcie,
    gpu_power,
    gpu_processes,
    gpu_thermal,
    nvlink,
    nvlink_capability,
    nvlink_errors,
    p2p,
)

PROBES: tuple[Callable[[Source], object], ...] = (
    gpu.probe,
    gpu_affinity.probe,
    gpu_board.probe,
    gpu_clocks.probe,
    gpu_counters.probe,
    gpu_ecc.probe,
    gpu_memory.probe,
    gpu_modes.probe,
    gpu_pairs.probe,
    gpu_pcie.probe,
    gpu_power.probe,
    gpu_processes.probe,
    gpu_thermal.probe,
    nvlink.probe,
    nvlink_capability.probe,
    nvlink_errors.probe,
    p2p.probe,
)
