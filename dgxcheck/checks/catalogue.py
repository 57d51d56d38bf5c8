"""All checks in the order in which they are shown."""

from __future__ import annotations

from dgxcheck.checks import (
    cpu,
    disks,
    driver,
    ecc,
    ethernet,
    governor,
    gpu,
    kernel,
    limits,
    memory,
    pcie,
    versions,
)
from dgxcheck.checks.check import Check

CHECKS: tuple[Check, ...] = (
    *driver.CHECKS, *gpu.CHECKS, *ecc.CHECKS, *limits.CHECKS, *pcie.CHECKS,
    *cpu.CHECKS, *memory.CHECKS, *disks.CHECKS, *ethernet.CHECKS, *governor.CHECKS, *kernel.CHECKS, *versions.CHECKS,
)  # fmt: skip
PROBES = (
    "pci", "numa", "infiniband", "slots", "bars", "aer", "ib_ports", "modules", "host", "edac", "network", "storage",
    "device_nodes", "kernel_log", "gpu", "nvlink", "gpu_pairs", "gpu_board", "gpu_pcie", "gpu_memory", "gpu_ecc",
    "gpu_counters", "gpu_clocks", "gpu_power", "gpu_thermal", "gpu_modes", "gpu_processes", "nvlink_errors", "p2p",
)  # fmt: skip
"""Fields of the snapshot that the checks judge."""
