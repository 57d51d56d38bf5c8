"""All checks in the order in which they are shown."""

from __future__ import annotations

from dgxcheck.checks import (
    clocks,
    cpu,
    disks,
    driver,
    ecc,
    ethernet,
    fabric_manager,
    gdr_acs,
    gdr_device,
    gdr_iommu,
    gdr_path,
    gdr_payload,
    gdr_software,
    governor,
    gpu,
    gpu_reference,
    inforom,
    installation,
    kernel,
    limits,
    measured_collective,
    measured_compute,
    measured_host,
    measured_integrity,
    measured_latency,
    measured_p2p,
    memory,
    network,
    nvlink,
    nvlink_errors,
    p2p,
    pcie,
    pcie_errors,
    pcie_speed,
    port_errors,
    ports,
    thermal,
    topology,
    uniform,
    versions,
)
from dgxcheck.checks.check import Check

CHECKS: tuple[Check, ...] = (
    *driver.CHECKS, *installation.CHECKS, *fabric_manager.CHECKS,
    *gpu.CHECKS, *gpu_reference.CHECKS, *uniform.CHECKS, *inforom.CHECKS,
    *ecc.CHECKS, *clocks.CHECKS, *limits.CHECKS, *thermal.CHECKS,
    *pcie.CHECKS, *pcie_speed.CHECKS, *pcie_errors.CHECKS,
    *nvlink.CHECKS, *nvlink_errors.CHECKS, *p2p.CHECKS, *topology.CHECKS,
    *network.CHECKS, *ports.CHECKS, *port_errors.CHECKS,
    *gdr_software.CHECKS, *gdr_device.CHECKS, *gdr_path.CHECKS, *gdr_acs.CHECKS, *gdr_iommu.CHECKS,
    *gdr_payload.CHECKS,
    *cpu.CHECKS, *memory.CHECKS, *disks.CHECKS, *ethernet.CHECKS, *governor.CHECKS,
    *kernel.CHECKS, *versions.CHECKS,
    *measured_host.CHECKS, *measured_integrity.CHECKS, *measured_p2p.CHECKS, *measured_latency.CHECKS,
    *measured_collective.CHECKS, *measured_compute.CHECKS,
)  # fmt: skip
PROBES = (
    "pci", "numa", "infiniband", "slots", "bars", "aer", "ib_ports", "modules", "host", "edac", "network", "storage",
    "device_nodes", "kernel_log", "gpu", "nvlink", "gpu_pairs", "gpu_board", "gpu_pcie", "gpu_memory", "gpu_ecc",
    "gpu_counters", "gpu_clocks", "gpu_power", "gpu_thermal", "gpu_modes", "gpu_processes", "nvlink_errors", "p2p",
    "measurement", "config_space", "iommu", "memlock",
)  # fmt: skip
"""Fields of the snapshot that the checks judge."""
