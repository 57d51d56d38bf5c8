"""All checks in the order in which they are shown."""

from __future__ import annotations

from dgxcheck.checks import (
    clocks,
    driver,
    ecc,
    fabric_manager,
    gpu,
    gpu_reference,
    inforom,
    installation,
    limits,
    pcie,
    thermal,
    uniform,
)
from dgxcheck.checks.check import Check

CHECKS: tuple[Check, ...] = (
    *driver.CHECKS, *installation.CHECKS, *fabric_manager.CHECKS, *gpu.CHECKS, *gpu_reference.CHECKS,
    *uniform.CHECKS, *inforom.CHECKS,
    *ecc.CHECKS, *clocks.CHECKS, *limits.CHECKS, *thermal.CHECKS, *pcie.CHECKS,
)  # fmt: skip
PROBES = (
    "pci", "numa", "infiniband", "slots", "bars", "aer", "ib_ports", "modules", "host", "edac", "network", "storage",
    "device_nodes", "gpu", "nvlink", "gpu_pairs", "gpu_board", "gpu_pcie", "gpu_memory", "gpu_ecc", "gpu_counters",
    "gpu_clocks", "gpu_power", "gpu_thermal", "gpu_modes", "gpu_processes", "nvlink_errors", "p2p",
)  # fmt: skip
"""Fields of the snapshot that the checks judge."""
