"""The host: CPUs, firmware, kernel modules, device nodes, NUMA nodes, memory, limits, storage and network."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record

_UNASKED = Missing(Gap.UNASKED, "/proc/cpuinfo")
STATED_CONTAINER = "stated container host"
"""Key of the fact that the outputs of a text were made in a container that hides some of the machine's GPUs."""


class Cpu(Record):
    """``/proc/cpuinfo``, which lists online CPUs only."""

    model: str | Missing
    sockets: int | Missing
    cores: int | Missing
    """Physical cores of all sockets."""
    threads: int
    hypervisor: bool | Missing
    """The flag that x86 CPUs show to a guest."""
    vendor: str | Missing = _UNASKED
    """``GenuineIntel``, ``AuthenticAMD``; like family and model number of x86 CPUs only."""
    family: int | Missing = _UNASKED
    model_number: int | Missing = _UNASKED


class CpuPolicy(Record):
    """One ``/sys/devices/system/cpu/cpufreq/policyN``: CPUs that change their clock together."""

    name: str
    governor: str | Missing
    limit_khz: int | Missing
    """``scaling_max_freq``, which can be set."""
    highest_khz: int | Missing
    """``cpuinfo_max_freq``"""


class Dmi(Record):
    """``/sys/class/dmi/id``; the serial number needs root."""

    sys_vendor: str | Missing
    product_name: str | Missing
    product_version: str | Missing
    product_serial: str | Missing
    board_vendor: str | Missing
    board_name: str | Missing
    bios_vendor: str | Missing
    bios_version: str | Missing
    bios_date: str | Missing


class Host(Record):
    """The machine that the GPUs are in."""

    hostname: str | Missing
    boot_id: str | Missing
    kernel_release: str | Missing
    kernel_version: str | Missing
    cmdline: str | Missing
    cpu: Cpu | Missing
    online_cpus: str | Missing
    memory_kb: int | Missing
    dmi: Dmi
    dgx_release: Mapping[str, str] | Missing
    """``/etc/dgx-release``: ``DGX_NAME``, ``DGX_SWBUILD_VERSION``, ...; the last of repeated names (updates append)."""
    os_release: Mapping[str, str] | Missing
    container: str | Missing | None
    """``docker``, ``podman``, ``lxc``, ...; None outside of containers."""
    vm: str | Missing | None
    """The hypervisor's or the DMI vendor's name; None on bare metal."""
    numa_balancing: int | Missing
    """0 off, 1 on, 2 and 3 with memory tiering."""
    cpufreq_driver: str | Missing
    cpufreq_governor: str | Missing
    cpu_policies: tuple[CpuPolicy, ...] | Missing
    cpu_boost: bool | Missing
    """May CPUs run above their nominal clock?"""
    present_cpus: str | Missing
    """Those that the kernel knows, online or not."""
    smt: str | Missing
    """``on``, ``off``, ``forceoff``, ``notsupported``: whether second threads are in use."""
    clock_source: str | Missing
    uptime_s: float | Missing = Missing(Gap.UNASKED, "/proc/uptime")
    """Seconds since boot; in an LXC container since its start."""


class Flavour(str, Enum):
    """Which kernel modules of NVIDIA are loaded; the open ones support Turing and newer only."""

    OPEN = "open"
    PROPRIETARY = "proprietary"


class Module(Record):
    """One ``/sys/module/<name>``."""

    name: str
    loaded: bool | Missing
    version: str | Missing
    refcnt: int | Missing
    state: str | Missing
    """``live``, ``coming``, ``going``; absent for what is built into the kernel."""


class MemoryPeer(Record):
    """One client in ``/sys/kernel/mm/memory_peers``: GPUDirect RDMA through peer memory."""

    name: str
    version: str | Missing


class NvidiaDriver(Record):
    """The first line of ``/proc/driver/nvidia/version``."""

    version: str
    flavour: Flavour


class Modules(Record):
    """What the kernel has loaded."""

    modules: tuple[Module, ...]
    """Every module of interest, loaded or not."""
    ib_core_holders: tuple[str, ...] | Missing
    """Modules that use ``ib_core``; a registered nvidia_peermem is one."""
    memory_peers: tuple[MemoryPeer, ...] | Missing
    driver: NvidiaDriver | Missing
    driver_params: Mapping[str, str] | Missing
    """``/proc/driver/nvidia/params``."""


class DeviceNode(Record):
    """One node under ``/dev``."""

    path: str
    opens: bool | Missing
    """False where this user may not open it; absent where there is no such node."""


class DeviceNodes(Record):
    """Nodes of the NVIDIA driver and of RDMA user space."""

    control: DeviceNode
    """``/dev/nvidiactl``"""
    uvm: DeviceNode
    """``/dev/nvidia-uvm``: CUDA needs it; ``nvidia-modprobe`` makes it when it is first needed."""
    gpus: tuple[DeviceNode, ...] | Missing
    """``/dev/nvidia<minor>`` from 0, as many as PCI has GPUs."""
    verbs: tuple[DeviceNode, ...] | Missing
    """``/dev/infiniband/uverbs<number>``"""


class NumaNode(Record):
    """One ``/sys/devices/system/node/nodeN``."""

    node: int
    cpulist: str | Missing


class NumaMemory(Record):
    """The memory of one node."""

    node: int
    memory_kb: int | Missing
    """``MemTotal`` of the node's ``meminfo``."""
    distances: tuple[int, ...] | Missing
    """To each online node in ascending order; 10 is the node itself."""


class MemoryController(Record):
    """One ``/sys/devices/system/edac/mc/mcN``; counts since the driver was loaded."""

    name: str
    mc_name: str | Missing
    corrected: int | Missing
    uncorrected: int | Missing
    size_mb: int | Missing


class Limit(Record):
    """``Max locked memory`` of ``/proc/<pid>/limits``, in bytes; None where it is unlimited."""

    soft: int | Missing | None
    hard: int | Missing | None


class JobDaemon(Record):
    """A daemon that starts jobs, which can lock no more than its hard limit."""

    name: str
    unit: str
    """Of systemd, such as ``slurmd.service``."""
    limit: Limit | Missing


class Setting(Record):
    """A line that sets the limit: of ``limits.conf(5)``, ``LimitMEMLOCK=`` of a unit or ``DefaultLimitMEMLOCK=``."""

    path: str
    line: int
    """Counted from 1."""
    text: str
    limits: tuple[int | None, ...]
    """Soft and hard one that it sets, or one of both, in bytes; None is unlimited."""


class Memlock(Record):
    """Limits, and the lines of configuration that they may come from."""

    own: Limit | Missing
    """Of the process that asks, and of what it starts."""
    daemons: tuple[JobDaemon, ...]
    settings: tuple[Setting, ...]


class BlockDevice(Record):
    """One ``/sys/class/block/<name>`` that is a whole device; partitions, loop, ram and zram devices are left out."""

    name: str
    size_bytes: int | Missing
    rotational: bool | Missing
    removable: bool | Missing
    model: str | Missing
    vendor: str | Missing


class MdArray(Record):
    """One software RAID array, ``/sys/class/block/<name>/md``."""

    name: str
    level: str | Missing
    state: str | Missing
    """``array_state``: ``clean``, ``active``, ``inactive``, ..."""
    degraded: int | Missing
    """Members that are missing; absent for levels without redundancy."""
    raid_disks: int | Missing
    members: tuple[str, ...] | Missing


class Storage(Record):
    """What ``/sys/class/block`` shows."""

    disks: tuple[BlockDevice, ...] | Missing
    arrays: tuple[MdArray, ...] | Missing


class NetInterface(Record):
    """One ``/sys/class/net/<name>``."""

    name: str
    operstate: str | Missing
    carrier: bool | Missing
    speed_mbit: int | Missing
    """Unsupported where the link is down or the driver does not say (-1)."""
    mtu: int | Missing
    type: int | Missing
    """ARPHRD number: 1 Ethernet, 32 InfiniBand, 772 loopback."""
    mac: str | Missing
    """6 octets, 20 for IP over InfiniBand."""
    bdf: str | Missing
    """PCI function behind it; absent for virtual interfaces."""


class Unit(Record):
    """One systemd unit that can keep GPUs open, or that starts jobs."""

    name: str
    """``nvidia-persistenced``: without ``.service``."""
    running: bool | Missing
    enabled: bool | Missing
    """Wanted by a target; some that run are not (``nvidia-persistenced`` can be started by udev)."""
