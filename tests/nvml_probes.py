"""All probes that ask NVML."""

from __future__ import annotations

from collections.abc import Callable

from dgxcheck.source.protocol import Source
from probes.gpu.identity import gpu, gpu_affinity, gpu_board, gpu_modes, gpu_processes
from probes.gpu.nvlink import gpu_pairs, nvlink, nvlink_capability, nvlink_errors, nvlink_rate, p2p
from probes.gpu.readings import gpu_clocks, gpu_counters, gpu_ecc, gpu_memory, gpu_pcie, gpu_power, gpu_thermal

PROBES: tuple[Callable[[Source], object], ...] = (
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
    nvlink_rate,
    p2p,
)
