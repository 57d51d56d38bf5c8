"""A text of any origin: every output that a reader recognises in it, and the lines that none understands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial

from dgxcheck.facts.missing import Json
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import INFINIBAND
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
from dgxcheck.readers.layout.undo import Layout
from dgxcheck.readers.lspci import text as lspci
from dgxcheck.readers.model import Imported, Reader
from dgxcheck.readers.nccl import log, programs, topology_xml
from dgxcheck.readers.network import adapters, carrier, counters, ethtool, fabric, hcas, logs, managers, settings
from dgxcheck.readers.nvidia_smi import catalogue as nvidia_smi
from dgxcheck.readers.values import LINE

Signs = tuple[str, ...]
BENCHMARKS: Mapping[Reader, Signs] = {
    p2p_bandwidth_latency.read_p2p_bandwidth_latency: ("p2p=", "connectivity", "peer device=", "pcibusid"),
    cuda_samples.read_bandwidth: ("bandwidth,", "bandwidthtest-"),
    cuda_samples.read_simple_p2p: ("peer",),
    nvbandwidth.read_text: ("gpu(column)", "nvbandwidth", "memcpy"),
    nvbandwidth.read_json: ("nvbandwidth", "testcases", "bandwidth_matrix"),
    nccl_tests.read: ("float", "half", "double", "int", "fp8", "f8e", "_perf", "_test", "device", "busbw", "bytes"),
    tartan.read_tartan: ("=====", "op,"),
    gpu_burn.read_burn: ("proc'd", "tested"),
    gpu_burn.read_fryer: ("gflops/s",),
    gpu_burn.read_ubergemm: ("ending with ",),
    gpu_burn.read_memtest: ("]:test", "errors found in block"),
    perftest.read_perftest: ("#iterations", "cuda device", "picking", "device name"),
    perftest.read_failures: (
        "failed status", "allocate mr", "create mr", "file descriptor for", "times addr_error", "failed to modify qp",
        "port number",
    ),
    logs.read_ucx: (" ucx ", " (synd 0x", "rlimit_memlock is", "severely limit memory"),
    logs.read_libfabric: ("libfabric:",),
}
_DCGM: Mapping[Reader, Signs] = {
    diag.read_diag: ("|",),
    diag.read_json: ("test_categories", "gpu_id", "entity_id"),
    health.read_health: ("overall health", "in health system"),
    devices.read_nvlink: ("gpuid ", "nvlink error counts"),
    devices.read_discovery: ("pci bus id",),
    devices.read_topo: ("topology information",),
    fields.read_metrics: ("dcgm_",),
    fields.read_smi_metrics: ("nvidia_smi_",),
    fields.read_dmon: ("entity",),
    health.read_stats: ("start time", "end time", "energy consumed", "listening for violations"),
    preflight.read: ("preflight",),
    devices.read_known: (
        "policy information", "instance hierarchy", "| group", "list modules", "field group", '"header"',
    ),
}
_MACHINE: Mapping[Reader, Signs] = {
    lspci.read_text: (*(f".{function} " for function in range(8)), "-[", "lnkcap", "lnksta", "acsctl"),
    lspci.read_lshw: ("*-",),
    lspci.read_bandwidth: ("available pcie bandwidth, limited",),
    dmidecode.read_dmidecode: ("bios information", "system information", "base board information", "memory device"),
    system.read_driver_version: ("nvrm version",),
    system.read_tegra: ("(release), revision:", " gr3d_freq "),
    system.read_modules: (
        "module", " live", "loading", "nvidia", "nv_peer_mem", "gdrdrv", "nouveau", "nova_core", "mlx", "ib_", "rdma_",
        "knem", "xpmem",
    ),
    modprobe.read_modprobe: (
        "fatal: module ", "error: module ", "not insert ", "to insert ", "dkms", "kernel headers", "nvidia: process '",
    ),
    modprobe.read_built: (": installed", ": built", ": added", "version: "),
    modprobe.read_installer: (
        "kernel module", "nouveau kernel driver", "kernel source tree", "linux kernel version", "performing the step",
        "version check failed", "is now complete",
    ),
    messages.read_messages: (
        "vmiop_", "nvidia-vgpu-vfio]", "send vgpu", "license from", "license not found", "license acquired",
        "is not viable", "/dev/vfio/",
        "iommu models", "libcufile", "libdcgm", " mig", "resetting all gpus", "multiple config", "gds release",
        "platform verification", "iommu: ", "acs enabled", "api mismatch", "initialize nvml", "init nvml", "space left",
        "nv-hostengine: ", "specified host", "to host engine", "iommu_group", "initialize dcgm",
        "profiling module", "retrying", "validating driver", "errornum: 801", "cufile", "cumemimport",
        "gpus ready state", "health watches not", "failed to query nvidia", "module of dcgm",
        "insufficient permissions",
    ),
    system.read_numactl: ("cpus:",),
    system.read_lscpu: ("numa node", "on-line cpu"),
    services.read_fabric_manager: ("[tid ", "fabricmanager", "fabric manager", "nvlsm:"),
    imex.read_imex: ("imex", "connectivity table", "[tid ", "domain state: ", "node #", '"connections"'),
    units.read_units: (".service", "systemctl is-"),
    hwloc_xml.read: ("pci_busid", "numanode"),
    health_checks.read_healthmon: ("loading config:", "global tests", "system results:", " #"),
    health_checks.read_config: tuple(health_checks.REPLACED_BY),
    health_checks.read_node_health: ("nhc:", "andwidth is", "ib bw"),
    node_exporter.read_node_exporter: ("node_",),
    sensors.read_sensors: ("| ok", "cr", "nr", "nc", "sensor id ", "ipmi status: "),
    event_log.read: ("sserted", "sel record id", "| power supply", "| processor", "| memory", "| critical interrupt",
                     "| fan ", "| temperature", "| event logging", "orrectable ecc", " inf ",
                     " min ", " maj ", " crt "),
    event_log.read_redfish: ("@odata.type",),
    event_log.read_idrac: ("record:", "seqnumber", "pci1", "pci3", "cpu0", "mem0", "psu0", "fan0", "tmp0", "vlt0"),
    event_log.read_iml: ("server critical fault", "uncorrectable pci express", "uncorrectable machine check"),
    own_records.read_smart: ("smart log for", "smartctl ", "=== start of ", "critical_warning", "smart_status",
                             "smart/health information", "smart self-test log", "id# attribute_name",
                             "smart error log version", "no errors logged"),
    arrays.read_arrays: (" : active", " : inactive"),
    arrays.read_array_details: ("/dev/md",),
    own_records.read_mcelog: ("mcelog", "hardware event. this is not"),
    system.read_file_systems: ("use% ", "verw% ", "uti% ", "uso% "),
    system.read_clock: ("leap status", "synchronized: "),
    own_records.read_ras: ("errors", "error(s)", "label", "mc_event", "aer_event"),
    own_records.read_edac: ("errors", ":ce:", ":ue:", "edac-util", "total "),
    arrays.read_pools: ("pool: ", "all pools are healthy", "is healthy"),
    arrays.read_raid: ("list :", "topology :", "eid:slt", "dg/vd"),
    slurm.read_slurm: ("nodelist", "nodename=", "reason=", "with reason:", "reason set to:", "gres.conf",
                       "autodetect nvml", "file-less gpu", "oom_kill event", "oom-kill event", "node failure"),
    schedulers.read_health_events: ("checkname", '"component"', " detected on ", "xidcriticalerror: ", "gpu_is_lost",
                                    "marked unhealthy", "non-nvml platform", "load nvml library", "incompatible ", "✘",
                                    "linkup ports", "port(s) are active", "ibstat ports/rates"),
    schedulers.read_kubernetes: ("true ", "false ", "unknown ", "restarts", "status ", "warning ", "allocatable",
                                 "errorcode:", "lasttransitiontime", "error ", "backoff ", "running ", "completed ",
                                 "pending ", "registered",
                                 "allocate failed", "insufficient nvidia.com/", "nodeprepareresources", '"node"'),
    health_agents.read_healthagent: ("healthchecks", "health checks"),
    health_agents.read_gpud_fabric: ("| gpu uuid",),
    cuda.read_collect_env: ("collecting environment information", "pytorch version"),
    services.read_nvsm: ("...", "overall system status", "the system has", "/systems/", "/chassis/"),
    health_checks.read_field_diagnostic: ("diag", "nvqual", "mods"),
    node_exporter.read_known: (
        "filename:", "error log entries for", "gpu uuid:", "/dev/nvme", " mb", "nvitop", "pcie gen",
        "mhz mem", "nvidia_gpu_", "nvml_", "cuda driver version", "nvidia gpu tools", "library context",
    ),
    excerpt.read_excerpt: ("",),
}  # fmt: skip
_NETWORK: Mapping[Reader, Signs] = {
    hcas.read_ibstat: ("ca '", "ibpanic"),
    hcas.read_ibstatus: ("infiniband device",),
    hcas.read_ibv_devinfo: (
        "hca_id", "guid", "ib devices", "libibverbs: ", "hcas found", "roce device", "fatal error:  ",
    ),
    counters.read_link: ("physical_state",),
    counters.read_files: (f"{INFINIBAND}/",),
    hcas.read_ibdev2netdev: ("==>",),
    ethtool.read_settings: ("settings for ",),
    adapters.read_mlxlink: ("operational info",),
    logs.read_rshim: ("display_level",),
    logs.read_devlink: ("pci/",),
    adapters.read_mst: ("(rev:",),
    ethtool.read_module: ("identifier",),
    fabric.read_iblinkinfo: ("==(",),
    counters.read_port_counters: ("counters: lid", " == ", "0 bad nodes"),
    fabric.read_known: (
        "ofed", "mlnx_en", "device", "start_", "portinfo", "port info", "ca ", "sw ", "rt ", "vendid=",
        "topology file", "(ibnetdiscover", "settings for ", "nic statistics", "# memory domain",
    ),
    counters.read_statistic: ("link ", "_phy: ", "_events: ", "module_"),
    adapters.read_firmware: ("image type:", "device #"),
    fabric.read_port_states: ("portinfo:", "port info:", "linkwidth"),
    settings.read_mlxconfig: ("device #", "device type:"),
    settings.read_qos: ("priority trust state",),
    settings.read_gids: ("n_gids", "index"),
    settings.read_ip_link: ("> mtu ",),
    managers.read_opensm: ("opensm[", "] 0x"),
    managers.read_ufm: ("[dev_id: ",),
    fabric.read_subnet: ("sminfo", "iberror:", "stage", "-e- ", "-w- ", "ibping statistics"),
}  # fmt: skip
_NCCL: Mapping[Reader, Signs] = {
    topology_xml.read_topology_xml: ("<pci",),
    log.read_log: ("nccl", "got completion"),
    programs.read_programs: ("nccl", "watchdog", "eartbeat", "last error", ": test ", "dump signal", "backenderror",
                             "nvlink sharp"),
    programs.read_ras: ("incomplete", "dead", "error", "mismatch", "timeout", "ok"),
}
_LOGS: Mapping[Reader, Signs] = {
    cuda.read_cuda_errors: (
        "cuda", "cuinit", "burn-drv", "gpuassert", "-> ", "libnvidia-ml", "library_not_found", "kernel driver does not",
    ),
    containers.read_containers: (
        "nvidia-container-cli", "select device driver", "nknown", "device index", "no runtime for", "unresolvable cdi",
        "98-nvidia.sh", "docker image",
    ),
    health.read_log: (" [",),
    carrier.read_carrier: ("systemd-networkd[", "networkmanager[", "mlx5_core "),
}
SIGNS: Mapping[Reader, Signs] = {**BENCHMARKS, **nvidia_smi.SIGNS, **_DCGM, **_MACHINE, **_NETWORK, **_NCCL, **_LOGS}
"""All readers, in the order in which they look at a text; of a text in which, in small letters, none of a reader's
signs occurs, it understands nothing."""
READERS: tuple[Reader, ...] = tuple(SIGNS)


def outputs(layout: Layout, time: CpuTime | None = None) -> Iterator[tuple[str, Imported]]:
    """Host and output of everything recognised; the lines of each host are read separately."""
    time = time or CpuTime()
    found: dict[str, tuple[Imported, ...]] = {}
    for owner, (numbers, those) in by_host(layout).items():
        whole, lines = "\n".join(those), tuple(those)
        if whole not in found:  # of many hosts most print the same
            text = whole.lower()
            found[whole] = tuple(
                output for reader, signs in time.within(SIGNS.items()) if any(sign in text for sign in signs)
                for output in time.of(partial(reader, lines))
            )  # fmt: skip
        known: dict[frozenset[int], frozenset[int]] = {}
        yield from ((owner, renumbered(output, numbers, known)) for output in found[whole])


_MOST_EMPTY = 2
"""Lines in a row, which separate outputs; more say nothing."""


def by_host(layout: Layout) -> dict[str, tuple[list[int], list[str]]]:
    """The text once for each host that a prefix, a heading or a prompt names: numbers of its lines, and the lines, with
    an empty one in place of those of others.
    """
    found: dict[str, tuple[list[int], list[str]]] = {}
    empty = 0
    for at in layout.kept:
        line = layout.lines[at]
        empty = 0 if line else empty + 1
        if empty > _MOST_EMPTY:
            continue
        numbers, lines = found.setdefault(layout.hosts[at], ([], []))
        if numbers and numbers[-1] < at - 1 and lines[-1]:
            numbers.append(at - 1)
            lines.append("")
        numbers.append(at)
        lines.append(line)
    return found


def renumbered(output: Imported, numbers: Sequence[int], known: dict[frozenset[int], frozenset[int]]) -> Imported:
    """An output whose lines have the numbers that they have in the file; ``known`` are sets of them, for each of ten
    thousand hosts can have the same."""
    if numbers[-1] == len(numbers) - 1:
        return output
    facts = {key: _renumbered(fact, numbers) for key, fact in output.facts.items()}
    if output.understood not in known:
        known[output.understood] = frozenset(numbers[at] for at in output.understood)
    return replace(output, facts=facts, understood=known[output.understood])


def _renumbered(fact: Json, numbers: Sequence[int]) -> Json:
    if isinstance(fact, list):
        return [_renumbered(member, numbers) for member in fact]
    if not isinstance(fact, dict):
        return fact
    found: dict[str, Json] = {name: _renumbered(member, numbers) for name, member in fact.items()}
    if isinstance(place := fact.get("from"), str) and place.startswith(LINE):
        found["from"] = f"{LINE}{numbers[int(place[len(LINE) :]) - 1] + 1}"
    return found


def unread(lines: Sequence[str], layout: Layout, found: Iterable[Imported], host: str = "") -> tuple[int, ...]:
    """Numbers from 0 of the lines that none of the outputs accounts for, those of other hosts left out."""
    accounted = layout.accounted(frozenset[int]().union(*{imported.understood for imported in found}))
    return tuple(
        number for number in layout.kept
        if number not in accounted and lines[number].strip() and (not host or layout.hosts[number] in ("", host))
        and not layout.is_prose(number)
    )  # fmt: skip
