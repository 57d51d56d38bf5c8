"""A text of any origin: every output that a reader recognises in it, and the lines that none understands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial

from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.input_file import CpuTime
from dgxcheck.readers.benchmarks import (
    cuda_samples,
    gpu_burn,
    nccl_tests,
    nvbandwidth,
    p2p_bandwidth_latency,
    perftest,
    tartan,
)
from dgxcheck.readers.dcgm import devices, diag, fields, health, preflight
from dgxcheck.readers.host import (
    arrays,
    containers,
    cuda,
    dmidecode,
    event_log,
    health_agents,
    health_checks,
    hwloc_xml,
    imex,
    messages,
    modprobe,
    node_exporter,
    own_records,
    schedulers,
    sensors,
    services,
    slurm,
    system,
    units,
)
from dgxcheck.readers.kernel_log import excerpt
from dgxcheck.readers.known import read_known
from dgxcheck.readers.layout.undo import Layout
from dgxcheck.readers.lspci import text as lspci
from dgxcheck.readers.model import Imported, Reader
from dgxcheck.readers.nccl import log, programs, topology_xml
from dgxcheck.readers.network import adapters, carrier, counters, ethtool, fabric, hcas, logs, managers, settings
from dgxcheck.readers.nvidia_smi import catalogue as nvidia_smi
from dgxcheck.readers.values import LINE, relocated
from dgxcheck.readers.wording import rows

BENCHMARKS: tuple[Reader, ...] = (
    p2p_bandwidth_latency.read_p2p_bandwidth_latency, cuda_samples.read_bandwidth, cuda_samples.read_simple_p2p,
    nvbandwidth.read_text, nvbandwidth.read_json, nccl_tests.read, tartan.read_tartan, gpu_burn.read_burn,
    gpu_burn.read_fryer, gpu_burn.read_ubergemm, gpu_burn.read_memtest, perftest.read_perftest, perftest.read_failures,
    logs.read_ucx, logs.read_libfabric,
)  # fmt: skip
READERS: tuple[Reader, ...] = (
    *BENCHMARKS,
    *nvidia_smi.READERS,
    diag.read_diag, diag.read_json, health.read_health, devices.read_nvlink, devices.read_discovery, devices.read_topo,
    fields.read_metrics, fields.read_smi_metrics, fields.read_dmon, health.read_stats, preflight.read,
    devices.read_unused,
    lspci.read_text, lspci.read_lshw, lspci.read_bandwidth, dmidecode.read_dmidecode, system.read_driver_version,
    system.read_tegra, system.read_modules, modprobe.read_modprobe, modprobe.read_built, modprobe.read_installer,
    messages.read_messages, system.read_numactl, system.read_lscpu, services.read_fabric_manager, imex.read_imex,
    units.read_units, hwloc_xml.read, health_checks.read_healthmon, health_checks.read_config,
    health_checks.read_node_health, node_exporter.read_node_exporter, sensors.read_sensors, event_log.read,
    event_log.read_redfish, event_log.read_idrac, event_log.read_iml, own_records.read_smart, arrays.read_arrays,
    arrays.read_array_details, own_records.read_mcelog, system.read_file_systems, system.read_clock,
    own_records.read_ras, own_records.read_edac, arrays.read_pools, arrays.read_raid, slurm.read_slurm,
    schedulers.read_health_events, schedulers.read_kubernetes, health_agents.read_healthagent,
    health_agents.read_gpud_fabric, cuda.read_collect_env, services.read_nvsm, health_checks.read_field_diagnostic,
    excerpt.read_excerpt,
    hcas.read_ibstat, hcas.read_ibstatus, hcas.read_ibv_devinfo, counters.read_link, counters.read_files,
    hcas.read_ibdev2netdev, ethtool.read_settings, adapters.read_mlxlink, logs.read_rshim, logs.read_devlink,
    adapters.read_mst, ethtool.read_module, fabric.read_iblinkinfo, counters.read_port_counters,
    counters.read_statistic, adapters.read_firmware, fabric.read_port_states, settings.read_mlxconfig,
    settings.read_qos, settings.read_gids, settings.read_ip_link, managers.read_opensm, managers.read_ufm,
    fabric.read_subnet,
    topology_xml.read_topology_xml, log.read_log, programs.read_programs, programs.read_ras,
    cuda.read_cuda_errors, containers.read_containers, health.read_log, carrier.read_carrier, read_known,
)  # fmt: skip
"""All readers, in the order in which they look at a text."""
_SIGNS = gathered(((row["module"], row["reader"]), row["sign"]) for row in rows("signs"))
SIGNS = {reader: _SIGNS[reader.__module__.removeprefix(f"{__package__}."), reader.__name__] for reader in READERS}
"""Of a text in which, in small letters, none of a reader's signs occurs, it understands nothing."""


def outputs(layout: Layout, time: CpuTime | None = None) -> Iterator[tuple[str, Imported]]:
    """Host and output of everything recognised; the lines of each host are read separately."""
    time = time or CpuTime()
    found: dict[str, tuple[Imported, ...]] = {}
    for owner, (numbers, those) in layout.by_host().items():
        whole, lines = "\n".join(those), tuple(those)
        if whole not in found:  # of many hosts most print the same
            text = whole.lower()
            found[whole] = tuple(
                output for reader, signs in time.within(SIGNS.items()) if any(sign in text for sign in signs)
                for output in time.of(partial(reader, lines))
            )  # fmt: skip
        known: dict[frozenset[int], frozenset[int]] = {}
        yield from ((owner, renumbered(output, numbers, known)) for output in found[whole])


def renumbered(output: Imported, numbers: Sequence[int], known: dict[frozenset[int], frozenset[int]]) -> Imported:
    """An output whose lines have the numbers that they have in the file; ``known`` are sets of them, for each of ten
    thousand hosts can have the same."""
    if numbers[-1] == len(numbers) - 1:
        return output

    def place(line: str) -> str:
        return f"{LINE}{numbers[int(line.removeprefix(LINE)) - 1] + 1}" if line.startswith(LINE) else line

    facts = {key: relocated(fact, place) for key, fact in output.facts.items()}
    if output.understood not in known:
        known[output.understood] = frozenset(numbers[at] for at in output.understood)
    return replace(output, facts=facts, understood=known[output.understood])


def unread(lines: Sequence[str], layout: Layout, found: Iterable[Imported], host: str = "") -> tuple[int, ...]:
    """Numbers from 0 of the lines that none of the outputs accounts for, those of other hosts left out."""
    accounted = layout.accounted(frozenset[int]().union(*{imported.understood for imported in found}))
    return tuple(
        number for number in layout.kept
        if number not in accounted and lines[number].strip() and (not host or layout.hosts[number] in ("", host))
        and not layout.is_prose(number)
    )  # fmt: skip
