"""All checks in the order in which they are shown."""

from __future__ import annotations

from dgxcheck.checks import baseline, imported_reports
from dgxcheck.checks.answers import files as answers_of_files
from dgxcheck.checks.answers import gpus as answers_of_gpus
from dgxcheck.checks.by_nature import last_run, records
from dgxcheck.checks.consistency import readings
from dgxcheck.checks.driver import bound, fabric_manager, imex, versions
from dgxcheck.checks.driver import loaded as driver
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.gpu import clocks, ecc, grace, inventory, power, presence, spare_memory, thermal
from dgxcheck.checks.gpudirect import isolation, pcie_settings, software
from dgxcheck.checks.gpudirect import path as gdr_path
from dgxcheck.checks.host import command_line, cpu, disks, ethernet, memory
from dgxcheck.checks.kernel_log import gpu as gpu_log
from dgxcheck.checks.kernel_log import hca as hca_log
from dgxcheck.checks.kernel_log import host as host_log
from dgxcheck.checks.kernel_log import memory as memory_log
from dgxcheck.checks.kernel_log import pcie as pcie_log
from dgxcheck.checks.kernel_log import software as software_log
from dgxcheck.checks.kernel_log import storage as storage_log
from dgxcheck.checks.kernel_log import xid
from dgxcheck.checks.measurement import checks as measurement
from dgxcheck.checks.network import companions, firmware, hcas, port_counters, port_link, port_state
from dgxcheck.checks.nvlink import errors as nvlink_errors
from dgxcheck.checks.nvlink import matrix, nvswitches, speed
from dgxcheck.checks.nvlink import state as nvlink
from dgxcheck.checks.pcie import aer as pcie_aer
from dgxcheck.checks.pcie import bar1, control, gpu_link, path, replays
from dgxcheck.checks.peer_access import status as p2p
from dgxcheck.checks.placement import misplaced, placement
from dgxcheck.checks.siblings import uniform

CHECKS: tuple[Check, ...] = (
    *imported_reports.COMPLETE,
    *driver.CHECKS, *bound.CHECKS, *driver.PERSISTENCE, *answers_of_gpus.CHECKS,
    *versions.INSTALLATION, *fabric_manager.CHECKS, imex.CHECK,
    *presence.CHECKS, *ecc.MODES, *presence.RECOVERY, *inventory.CHECKS, *ecc.CHECKS, *spare_memory.CHECKS,
    *clocks.CHECKS, *power.CHECKS, *thermal.CHECKS,
    *gpu_link.WIDTH, *path.CHECKS, *misplaced.CHECKS, *answers_of_files.DEVICES, *gpu_link.GENERATION,
    *control.CHECKS, *bar1.CHECKS, *replays.CHECKS, *pcie_aer.CHECKS,
    *nvlink.CHECKS, *nvswitches.CHECKS, *companions.CHECKS, *speed.CHECKS, *nvlink_errors.CHECKS, *matrix.CHECKS,
    *p2p.CHECKS, *placement.CHECKS,
    *hcas.CHECKS, *firmware.CHECKS, *port_state.CHECKS, *port_link.CHECKS, *port_counters.CHECKS,
    *readings.CHECKS, *records.CHECKS,
    *software.CHECKS, *gdr_path.CHECKS,
    *isolation.CHECKS, *pcie_settings.CHECKS,
    *command_line.CHECKS, *cpu.CPU, *memory.MEMORY, *memory.ERRORS, *memory.NUMA, *answers_of_files.HOST_FILES,
    *disks.CHECKS, *last_run.INVENTORY_CHECKS, *ethernet.CHECKS, *cpu.GOVERNOR, *grace.CHECKS, *cpu.CPU_CLOCK,
    *xid.CHECKS, *gpu_log.CHECKS, *software_log.NVLINK, *pcie_log.CHECKS, *hca_log.CHECKS,
    *memory_log.CHECKS, *storage_log.CHECKS, *host_log.CHECKS, *software_log.CHECKS,
    *imported_reports.CHECKS, *versions.SITE_VERSIONS, *baseline.CHECKS, *uniform.CHECKS, *last_run.CHECKS,
    *measurement.CHECKS,
)  # fmt: skip
PROBES = (
    "pci", "vpd", "numa", "numa_memory", "infiniband", "slots", "empty_ports", "bars", "aer", "ib_ports", "modules",
    "host", "edac", "dimms", "network", "storage", "device_nodes", "kernel_log", "gpu", "nvlink", "gpu_pairs",
    "gpu_board", "gpu_pcie", "gpu_memory", "gpu_ecc", "gpu_counters", "gpu_clocks", "gpu_power", "gpu_thermal",
    "gpu_modes", "gpu_processes", "nvlink_rate", "nvlink_errors", "p2p", "measurement", "config_space", "iommu",
    "memlock", "units", "imex", "stated", "tool_reports",
)  # fmt: skip
"""Fields of the snapshot that the checks judge."""
