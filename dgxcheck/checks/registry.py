"""All checks in the order in which they are shown."""

from __future__ import annotations

from dgxcheck.checks.consistency import readings
from dgxcheck.checks.drift import baseline
from dgxcheck.checks.driver import fabric_health, fabric_manager, installation, persistence, site_versions
from dgxcheck.checks.driver import loaded as driver
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.gpu import clocks, ecc, inforom, inventory, limits, presence, spare_memory, thermal
from dgxcheck.checks.gpudirect import (
    acs,
    bar1_and_port,
    iommu,
    max_payload,
    memlock,
    peer_memory,
    read_request,
    verbs_stack,
)
from dgxcheck.checks.gpudirect import path as gdr_path
from dgxcheck.checks.host import command_line, cpu, cpu_clock, disks, edac, ethernet, governor, memory, numa, report
from dgxcheck.checks.kernel_log import gpu as gpu_log
from dgxcheck.checks.kernel_log import hca as hca_log
from dgxcheck.checks.kernel_log import host as host_log
from dgxcheck.checks.kernel_log import memory as memory_log
from dgxcheck.checks.kernel_log import pcie as pcie_log
from dgxcheck.checks.kernel_log import storage as storage_log
from dgxcheck.checks.kernel_log import xid
from dgxcheck.checks.measurement import (
    burn_in,
    collectives,
    compute,
    host_copies,
    integrity,
    latency,
    p2p_copies,
    rdma_ports,
)
from dgxcheck.checks.network import (
    firmware,
    hca_placement,
    hcas,
    link_layer,
    port_errors,
    port_rate,
    port_state,
    transport_errors,
)
from dgxcheck.checks.nvlink import errors as nvlink_errors
from dgxcheck.checks.nvlink import matrix, nvswitches, speed
from dgxcheck.checks.nvlink import state as nvlink
from dgxcheck.checks.pcie import aer as pcie_aer
from dgxcheck.checks.pcie import bar1, control, generation, path, replays
from dgxcheck.checks.pcie import width as pcie
from dgxcheck.checks.peer_access import status as p2p
from dgxcheck.checks.placement import halves, placement
from dgxcheck.checks.placement import inventory as host_inventory
from dgxcheck.checks.siblings import uniform
from dgxcheck.checks.silence import answers, files, layers
from dgxcheck.checks.tools import reports

CHECKS: tuple[Check, ...] = (
    *report.CHECKS,
    *driver.CHECKS,
    *persistence.CHECKS,
    *answers.CHECKS,
    *installation.CHECKS,
    *fabric_manager.CHECKS,
    *fabric_health.CHECKS,
    *presence.CHECKS,
    *inventory.CHECKS,
    *inforom.CHECKS,
    *ecc.CHECKS,
    *spare_memory.CHECKS,
    *clocks.CHECKS,
    *limits.CHECKS,
    *thermal.CHECKS,
    *pcie.CHECKS,
    *path.CHECKS,
    *halves.CHECKS,
    *files.CHECKS,
    *generation.CHECKS,
    *control.CHECKS,
    *bar1.CHECKS,
    *replays.CHECKS,
    *pcie_aer.CHECKS,
    *nvlink.CHECKS,
    *nvswitches.CHECKS,
    *speed.CHECKS,
    *nvlink_errors.CHECKS,
    *matrix.CHECKS,
    *p2p.CHECKS,
    *placement.CHECKS,
    *hcas.CHECKS,
    *hca_placement.CHECKS,
    *firmware.CHECKS,
    *port_state.CHECKS,
    *link_layer.CHECKS,
    *port_rate.CHECKS,
    *port_errors.CHECKS,
    *transport_errors.CHECKS,
    *readings.CHECKS,
    *peer_memory.CHECKS,
    *verbs_stack.CHECKS,
    *memlock.CHECKS,
    *bar1_and_port.CHECKS,
    *gdr_path.CHECKS,
    *acs.CHECKS,
    *iommu.CHECKS,
    *max_payload.CHECKS,
    *read_request.CHECKS,
    *command_line.CHECKS,
    *cpu.CHECKS,
    *memory.CHECKS,
    *edac.CHECKS,
    *numa.CHECKS,
    *layers.CHECKS,
    *disks.CHECKS,
    *host_inventory.CHECKS,
    *ethernet.CHECKS,
    *governor.CHECKS,
    *cpu_clock.CHECKS,
    *xid.CHECKS,
    *gpu_log.CHECKS,
    *pcie_log.CHECKS,
    *hca_log.CHECKS,
    *memory_log.CHECKS,
    *storage_log.CHECKS,
    *host_log.CHECKS,
    *reports.CHECKS,
    *site_versions.CHECKS,
    *baseline.CHECKS,
    *uniform.CHECKS,
    *host_copies.CHECKS,
    *integrity.CHECKS,
    *p2p_copies.CHECKS,
    *latency.CHECKS,
    *rdma_ports.CHECKS,
    *collectives.CHECKS,
    *compute.CHECKS,
    *burn_in.CHECKS,
)
PROBES = (
    "pci", "numa", "numa_memory", "infiniband", "slots", "bars", "aer", "ib_ports", "modules", "host", "edac",
    "network", "storage", "device_nodes", "kernel_log", "gpu", "nvlink", "gpu_pairs", "gpu_board", "gpu_pcie",
    "gpu_memory", "gpu_ecc", "gpu_counters", "gpu_clocks", "gpu_power", "gpu_thermal", "gpu_modes", "gpu_processes",
    "nvlink_rate", "nvlink_errors", "p2p", "measurement", "config_space", "iommu", "memlock", "units", "stated",
    "tool_reports",
)  # fmt: skip
"""Fields of the snapshot that the checks judge."""
