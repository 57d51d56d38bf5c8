"""All probes that ask NVML."""

from __future__ import annotations

from collections.abc import Callable

from dgxcheck.source.protocol import Source
from probes.gpu import (
    affinity,
    board,
    clocks,
    counters,
    ecc,
    modes,
    nvlink,
    nvlink_capability,
    nvlink_errors,
    nvlink_rate,
    p2p,
    pcie,
    processes,
    thermal,
)
from probes.gpu import identity as gpu
from probes.gpu import memory as gpu_memory
from probes.gpu import pairs as gpu_pairs
from probes.gpu import power as gpu_power

PROBES: tuple[Callable[[Source], object], ...] = (
    gpu.probe,
    affinity.probe,
    board.probe,
    clocks.probe,
    counters.probe,
    ecc.probe,
    gpu_memory.probe,
    modes.probe,
    gpu_pairs.probe,
    pcie.probe,
    gpu_power.probe,
    processes.probe,
    thermal.probe,
    nvlink.probe,
    nvlink_capability.probe,
    nvlink_errors.probe,
    nvlink_rate.probe,
    p2p.probe,
)
