"""The host: CPUs, firmware, kernel modules, device nodes, NUMA nodes, memory, limits, storage and network."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from functools import cache
from typing import Any

from dgxcheck.facts import nature
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record, fields

_UNASKED = Missing(Gap.UNASKED, "/proc/cpuinfo")
STATED_CONTAINER = "stated container host"
"""Key of the fact that the outputs of a text were made in a container that hides some of the machine's GPUs."""
STATED_NAMED = "stated gpus-named host"
"""Key of the fact that outputs name GPUs (the ranks of a run, lines of a log) and none lists those of the machine."""


class Cpu(Record):
    """``/proc/cpuinfo``, which lists online CPUs only."""

    model: str | Missing = nature.inventory("CPU model")
    sockets: int | Missing = nature.inventory("CPU sockets", better="more")
    cores: int | Missing = nature.inventory("CPU cores", better="more")
    """Physical cores of all sockets."""
    threads: int = nature.inventory("CPU threads", better="more")
    hypervisor: bool | Missing = nature.place("guest of a hypervisor", kept=True)
    """The flag that x86 CPUs show to a guest."""
    vendor: str | Missing = nature.inventory("CPU vendor", default=_UNASKED)
    """``GenuineIntel``, ``AuthenticAMD``; like family and model number of x86 CPUs only."""
    family: int | Missing = nature.inventory("CPU family", default=_UNASKED)
    model_number: int | Missing = nature.inventory("CPU model number", default=_UNASKED)


class CpuPolicy(Record, where="/sys/devices/system/cpu/cpufreq/{name}"):
    """One ``/sys/devices/system/cpu/cpufreq/policyN``: CPUs that change their clock together."""

    name: str = nature.key()
    governor: str | Missing = nature.setting("frequency governor", file="scaling_governor")
    limit_khz: int | Missing = nature.setting("highest clock allowed", "kHz", file="scaling_max_freq")
    highest_khz: int | Missing = nature.capability(
        "highest clock", "kHz", differs="cores of several types have several", file="cpuinfo_max_freq"
    )


class Dmi(Record, where="/sys/class/dmi/id"):
    """``/sys/class/dmi/id``; the serial number needs root."""

    sys_vendor: str | Missing = nature.inventory("maker")
    product_name: str | Missing = nature.inventory("product")
    product_version: str | Missing = nature.inventory("product version")
    product_serial: str | Missing = nature.identity("serial number of the machine")
    board_vendor: str | Missing = nature.inventory("maker of the board")
    board_name: str | Missing = nature.inventory("board")
    bios_vendor: str | Missing = nature.inventory("maker of the BIOS")
    bios_version: str | Missing = nature.version("BIOS")
    bios_date: str | Missing = nature.version("BIOS date")


class Host(Record):
    """The machine that the GPUs are in."""

    hostname: str | Missing = nature.identity("host name", any="a host has one; the last run is found by it")
    boot_id: str | Missing = nature.load("boot id")
    kernel_release: str | Missing = nature.version("kernel")
    kernel_version: str | Missing = nature.version("kernel build")
    cmdline: str | Missing = nature.setting("kernel command line", kept=True)
    cpu: Cpu | Missing = nature.holder("CPUs")
    online_cpus: str | Missing = nature.state("online CPUs", kept=True)
    memory_kb: int | Missing = nature.inventory("memory", "kB", better="more", tolerance="host.memory-missing")
    dmi: Dmi = nature.holder()
    dgx_release: Mapping[str, str] | Missing = nature.version("DGX OS release")
    """``/etc/dgx-release``: ``DGX_NAME``, ``DGX_SWBUILD_VERSION``, ...; the last of repeated names (updates append)."""
    os_release: Mapping[str, str] | Missing = nature.version("operating system")
    container: str | Missing | None = nature.place("container")
    """``docker``, ``podman``, ``lxc``, ...; None outside of containers."""
    vm: str | Missing | None = nature.place("hypervisor")
    """The hypervisor's or the DMI vendor's name; None on bare metal."""
    numa_balancing: int | Missing = nature.setting("NUMA balancing", kept=True)
    """0 off, 1 on, 2 and 3 with memory tiering."""
    cpufreq_driver: str | Missing = nature.version("frequency driver")
    cpufreq_governor: str | Missing = nature.setting("frequency governor", kept=True)
    cpu_policies: tuple[CpuPolicy, ...] | Missing = nature.holder()
    cpu_boost: bool | Missing = nature.setting("CPU boost", kept=True)
    """May CPUs run above their nominal clock?"""
    present_cpus: str | Missing = nature.inventory("CPUs present")
    """Those that the kernel knows, online or not."""
    smt: str | Missing = nature.setting("second threads of cores", kept=True)
    """``on``, ``off``, ``forceoff``, ``notsupported``: whether second threads are in use."""
    clock_source: str | Missing = nature.setting("clock source", kept=True)
    gpus_named: bool = nature.load("outputs that name GPUs and list none", default=False)
    """Are the GPUs those that outputs name, such as the ranks of a run? There may be others."""
    uptime_s: float | Missing = nature.load("time since boot", "s", default=Missing(Gap.UNASKED, "/proc/uptime"))
    """Seconds since boot; in an LXC container since its start."""


@cache
def unknown_host(gap: Missing) -> Host:
    """A host of which every fact is this gap."""
    of_firmware: dict[str, Any] = dict.fromkeys(fields(Dmi), gap)
    of_host: dict[str, Any] = dict.fromkeys(fields(Host), gap)
    return Host(**of_host | {"dmi": Dmi(**of_firmware), "gpus_named": False})


class Flavour(str, Enum):
    """Which kernel modules of NVIDIA are loaded; the open ones support Turing and newer only."""

    OPEN = "open"
    PROPRIETARY = "proprietary"


class Module(Record, where="/sys/module/{name}"):
    """One ``/sys/module/<name>``."""

    name: str = nature.key()
    loaded: bool | Missing = nature.state("module loaded", differs="a module is loaded when something needs it")
    version: str | Missing = nature.version("module version")
    refcnt: int | Missing = nature.load("users of the module")
    state: str | Missing = nature.state("module state", good=("live",), file="initstate")
    """``live``, ``coming``, ``going``; absent for what is built into the kernel."""


class MemoryPeer(Record, where="/sys/kernel/mm/memory_peers/{name}"):
    """One client in ``/sys/kernel/mm/memory_peers``: GPUDirect RDMA through peer memory."""

    name: str = nature.key()
    version: str | Missing = nature.version("peer memory client")


class NvidiaDriver(Record):
    """The first line of ``/proc/driver/nvidia/version``."""

    version: str = nature.version("kernel driver")
    flavour: Flavour = nature.version("kind of kernel driver")


class Modules(Record):
    """What the kernel has loaded."""

    modules: tuple[Module, ...] = nature.holder()
    """Every module of interest, loaded or not."""
    ib_core_holders: tuple[str, ...] | Missing = nature.state("users of ib_core", differs="gdr.peer-memory judges it")
    """Modules that use ``ib_core``; a registered nvidia_peermem is one."""
    memory_peers: tuple[MemoryPeer, ...] | Missing = nature.holder()
    driver: NvidiaDriver | Missing = nature.holder("kernel driver")
    driver_params: Mapping[str, str] | Missing = nature.setting("driver parameters", kept=True)
    """``/proc/driver/nvidia/params``."""


class DeviceNode(Record):
    """One node under ``/dev``."""

    path: str = nature.key()
    opens: bool | Missing = nature.state("device node opens", good=(True,), by="driver.device-nodes")
    """False where this user may not open it; absent where there is no such node."""


class DeviceNodes(Record):
    """Nodes of the NVIDIA driver and of RDMA user space."""

    control: DeviceNode = nature.holder()
    """``/dev/nvidiactl``"""
    uvm: DeviceNode = nature.holder()
    """``/dev/nvidia-uvm``: CUDA needs it; ``nvidia-modprobe`` makes it when it is first needed."""
    gpus: tuple[DeviceNode, ...] | Missing = nature.holder()
    """``/dev/nvidia<minor>`` from 0, as many as PCI has GPUs."""
    verbs: tuple[DeviceNode, ...] | Missing = nature.holder()
    """``/dev/infiniband/uverbs<number>``"""


class Imex(Record, where="/etc/nvidia-imex/nodes_config.cfg"):
    """NVIDIA's service that shares GPU memory between the nodes of an NVLink domain."""

    nodes: int | Missing = nature.setting("IMEX nodes")
    """How many are listed; not asked where the unit neither runs nor is enabled."""


class MemlockLimit(Record):
    """``Max locked memory`` of ``/proc/<pid>/limits``, in bytes; None where it is unlimited."""

    soft: int | Missing | None = nature.setting("soft limit", "bytes", differs="gdr.memlock judges what jobs may lock")
    hard: int | Missing | None = nature.setting("hard limit", "bytes", differs="gdr.memlock judges what jobs may lock")


class JobDaemon(Record):
    """A daemon that starts jobs, which can lock no more than its hard limit."""

    name: str = nature.key()
    unit: str = nature.key()
    """Of systemd, such as ``slurmd.service``."""
    limit: MemlockLimit | Missing = nature.holder()


class Setting(Record):
    """A line that sets the limit: of ``limits.conf(5)``, ``LimitMEMLOCK=`` of a unit or ``DefaultLimitMEMLOCK=``."""

    path: str = nature.key()
    line: int = nature.key()
    """Counted from 1."""
    text: str = nature.load("line of a configuration")
    limits: tuple[int | None, ...] = nature.setting(
        "limits of locked memory", "bytes", differs="gdr.memlock judges what jobs may lock"
    )
    """Soft and hard one that it sets, or one of both, in bytes; None is unlimited."""


class Memlock(Record):
    """Limits, and the lines of configuration that they may come from."""

    own: MemlockLimit | Missing = nature.holder()
    """Of the process that asks, and of what it starts."""
    daemons: tuple[JobDaemon, ...] = nature.holder()
    settings: tuple[Setting, ...] = nature.holder()


class BlockDevice(Record, where="/sys/class/block/{name}"):
    """One ``/sys/class/block/<name>`` that is a whole device; partitions, loop, ram and zram devices are left out."""

    name: str = nature.key()
    size_bytes: int | Missing = nature.inventory("size", "bytes", file="size", shown=("GB", 1e-9))
    rotational: bool | Missing = nature.capability(file="queue/rotational")
    removable: bool | Missing = nature.capability(differs="a stick may be; nothing follows from it")
    model: str | Missing = nature.inventory("disk model", file="device/model")
    vendor: str | Missing = nature.inventory("disk vendor", file="device/vendor")


class MdArray(Record, where="/sys/class/block/{name}/md"):
    """One software RAID array, ``/sys/class/block/<name>/md``."""

    name: str = nature.key()
    level: str | Missing = nature.setting("RAID level", kept=True)
    state: str | Missing = nature.state(
        "RAID state", file="array_state", by="host.disks", differs="arrays are written to, checked or idle by turns",
        good=("clean", "active", "active-idle", "write-pending", "read-auto"),
    )  # fmt: skip
    """``array_state``: ``clean``, ``active``, ``inactive``, ..."""
    degraded: int | Missing = nature.state("members missing", better="less", good=(0,), by="host.disks")
    """Members that are missing; absent for levels without redundancy."""
    raid_disks: int | Missing = nature.inventory("members of the array")
    members: tuple[str, ...] | Missing = nature.inventory(
        "members of the array", any="the names of disks change from boot to boot"
    )


class Storage(Record):
    """What ``/sys/class/block`` shows."""

    disks: tuple[BlockDevice, ...] | Missing = nature.holder()
    arrays: tuple[MdArray, ...] | Missing = nature.holder()


class NetInterface(Record, where="/sys/class/net/{name}"):
    """One ``/sys/class/net/<name>``."""

    name: str = nature.key()
    operstate: str | Missing = nature.state("link state", differs="host.ethernet judges it; a cable is not needed")
    carrier: bool | Missing = nature.state(better="more", differs="host.ethernet judges it; a cable is not needed")
    speed_mbit: int | Missing = nature.state(
        "speed", "Mbit/s", better="more", differs="host.ethernet judges it; a cable is not needed", file="speed",
        kept=True,
    )
    """Unsupported where the link is down or the driver does not say (-1)."""
    carrier_down_count: int | Missing = nature.counter(
        "lost carriers", limit="network.carrier", per="day", blames="cable", at_boot=2,
        source="sysfs-class-net of the kernel",
    )  # fmt: skip
    """Times that it lost its carrier since its driver was loaded, at boot once or twice; from Linux 4.16 on."""
    mtu: int | Missing = nature.setting("MTU", kept=True)
    type: int | Missing = nature.setting("interface type", kept=True)
    """ARPHRD number: 1 Ethernet, 32 InfiniBand, 772 loopback."""
    mac: str | Missing = nature.identity(
        "MAC address", file="address", flashed=True, lasts=len("00:00:00:00:00:00:00:00")
    )
    """6 octets; 20 for IP over InfiniBand: queue pair, subnet prefix and the port's GUID, which alone stays (Red Hat,
    Configuring InfiniBand and RDMA networks, IPoIB hardware addresses)."""
    bdf: str | Missing = nature.place("PCI function", any="a function may have several interfaces")
    """PCI function behind it; absent for virtual interfaces."""


def had_carrier(interface: NetInterface) -> bool:
    """Was a cable in it since its driver was loaded? It lost its carrier twice (net/sched/sch_generic.c: the first may
    be the driver's own), and has to have had one in between.
    """
    lost = interface.carrier_down_count
    return isinstance(lost, int) and lost > 1


class Unit(Record):
    """One systemd unit that can keep GPUs open, or that starts jobs."""

    name: str = nature.key()
    """``nvidia-persistenced``: without ``.service``."""
    running: bool | Missing = nature.state("service running")
    enabled: bool | Missing = nature.setting("service enabled")
    """Wanted by a target; some that run are not (``nvidia-persistenced`` can be started by udev)."""
