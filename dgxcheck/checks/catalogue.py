"""All checks in the order in which they are shown."""

from __future__ import annotations

from dgxcheck.checks import (
    driver,
    ecc,
    gpu,
    limits,
    network,
    nvlink,
    nvlink_errors,
    p2p,
    pcie,
    pcie_errors,
    pcie_speed,
    port_errors,
    ports,
    topology,
)
from dgxcheck.checks.check import Check

CHECKS: tuple[Check, ...] = (
    *driver.CHECKS,
    *gpu.CHECKS,
    *ecc.CHECKS,
    *limits.CHECKS,
    *pcie.CHECKS,
    *pcie_speed.CHECKS,
    *pcie_errors.CHECKS,
    *nvlink.CHECKS,
    *nvlink_errors.CHECKS,
    *p2p.CHECKS,
    *topology.CHECKS,
    *network.CHECKS,
    *ports.CHECKS,
    *port_errors.CHECKS,
)
PROBES = (
    "pci", "numa", "infiniband", "slots", "bars", "aer", "ib_ports", "modules", "host", "edac", "network", "storage",
    "device_nodes", "gpu", "nvlink", "gpu_pairs", "gpu_board", "gpu_pcie", "gpu_memory", "gpu_ecc", "gpu_counters",
    "gpu_clocks", "gpu_power", "gpu_thermal", "gpu_modes", "gpu_processes", "nvlink_errors", "p2p",
)  # fmt: skip
"""Fields of the snapshot that the checks judge."""
