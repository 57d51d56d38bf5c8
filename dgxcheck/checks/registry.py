"""All checks, in the order of their remedies (``remedies.tsv``), in which they are shown."""

from __future__ import annotations

from dgxcheck.checks import baseline, imported_reports
from dgxcheck.checks.answers import files as answers_of_files
from dgxcheck.checks.answers import gpus as answers_of_gpus
from dgxcheck.checks.by_nature import last_run, records
from dgxcheck.checks.consistency import readings
from dgxcheck.checks.driver import bound, fabric_manager, imex, versions
from dgxcheck.checks.driver import loaded as driver
from dgxcheck.checks.engine.check import IDS, Check
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

MODULES = (
    imported_reports, driver, bound, answers_of_gpus, versions, fabric_manager, imex, presence, ecc, inventory,
    spare_memory, clocks, power, thermal, gpu_link, path, misplaced, answers_of_files, control, bar1, replays, pcie_aer,
    nvlink, nvswitches, companions, speed, nvlink_errors, matrix, p2p, placement, hcas, firmware, port_state, port_link,
    port_counters, readings, records, software, gdr_path, isolation, pcie_settings, command_line, cpu, memory, disks,
    last_run, ethernet, grace, xid, gpu_log, software_log, pcie_log, hca_log, memory_log, storage_log, host_log,
    baseline, uniform, measurement,
)  # fmt: skip
CHECKS: tuple[Check, ...] = tuple(
    sorted((check for module in MODULES for check in module.CHECKS), key=lambda check: IDS.index(check.id))
)
PROBES = (
    "pci", "vpd", "numa", "numa_memory", "infiniband", "slots", "empty_ports", "bars", "aer", "ib_ports", "modules",
    "host", "edac", "dimms", "network", "storage", "device_nodes", "kernel_log", "gpu", "nvlink", "gpu_pairs",
    "gpu_board", "gpu_pcie", "gpu_memory", "gpu_ecc", "gpu_counters", "gpu_clocks", "gpu_power", "gpu_thermal",
    "gpu_modes", "gpu_processes", "nvlink_rate", "nvlink_errors", "p2p", "measurement", "config_space", "iommu",
    "memlock", "units", "imex", "stated", "tool_reports",
)  # fmt: skip
"""Fields of the snapshot that the checks judge."""
