"""All readers, by subject, in the order in which they look at a text."""

from __future__ import annotations

from dgxcheck.readers.benchmarks import catalogue as benchmarks
from dgxcheck.readers.dcgm import diag, diag_json, discovery, dmon, health, job_stats, metrics, preflight, topo
from dgxcheck.readers.dcgm import known as dcgm_known
from dgxcheck.readers.dcgm import nvlink as dcgm_nvlink
from dgxcheck.readers.host import (
    collect_env,
    dmidecode,
    driver_version,
    fabric_manager,
    field_diagnostic,
    healthmon,
    healthmon_config,
    hwloc_xml,
    lscpu,
    modules,
    node_exporter,
    node_health,
    numactl,
    nvsm,
)
from dgxcheck.readers.host import known as other_monitors
from dgxcheck.readers.kernel_log import excerpt
from dgxcheck.readers.logs import carrier, containers, cuda_errors, dcgm_log
from dgxcheck.readers.lspci import text as lspci
from dgxcheck.readers.model import Reader
from dgxcheck.readers.nccl import log as nccl_log
from dgxcheck.readers.nccl import programs, ras, topology_xml
from dgxcheck.readers.network import (
    firmware,
    ibdev2netdev,
    iblinkinfo,
    ibstat,
    ibstatus,
    ibv_devinfo,
    known,
    mlxlink,
    mst,
    port_counters,
    rdma_link,
    rdma_statistic,
    subnet,
)  # fmt: skip
from dgxcheck.readers.nvidia_smi import catalogue

_DCGM: tuple[Reader, ...] = (
    diag.read, diag_json.read, health.read, dcgm_nvlink.read, discovery.read, topo.read, metrics.read, dmon.read,
    job_stats.read, preflight.read, dcgm_known.read,
)  # fmt: skip
_MACHINE: tuple[Reader, ...] = (
    lspci.read,
    dmidecode.read,
    driver_version.read,
    modules.read,
    numactl.read,
    lscpu.read,
    fabric_manager.read,
    hwloc_xml.read,
    healthmon.read,
    healthmon_config.read,
    node_health.read,
    node_exporter.read,
    collect_env.read,
    nvsm.read,
    field_diagnostic.read,
    other_monitors.read,
    excerpt.read,
)
_NETWORK: tuple[Reader, ...] = (
    ibstat.read, ibstatus.read, ibv_devinfo.read, rdma_link.read, ibdev2netdev.read, mlxlink.read, mst.read,
    iblinkinfo.read, port_counters.read, known.read, rdma_statistic.read, firmware.read, subnet.read,
)  # fmt: skip
_NCCL: tuple[Reader, ...] = (topology_xml.read, nccl_log.read, programs.read, ras.read)
_LOGS: tuple[Reader, ...] = (cuda_errors.read, containers.read, dcgm_log.read, carrier.read)
READERS: tuple[Reader, ...] = (
    *benchmarks.READERS, *catalogue.READERS, *_DCGM, *_MACHINE, *_NETWORK, *_NCCL, *_LOGS,
)  # fmt: skip
