"""The host: CPUs, memory, kernel, firmware, release, container or virtual machine; disks, arrays and
network interfaces."""

from __future__ import annotations

import re

from dgxcheck.facts.host import (
    STATED_CONTAINER,
    STATED_NAMED,
    BlockDevice,
    Cpu,
    CpuPolicy,
    Dmi,
    Host,
    MdArray,
    NetInterface,
    Storage,
)
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.record import fields
from dgxcheck.facts.sysfs import BLOCK, DMI
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.source.protocol import Source
from probes.ask import ask, cpulist, decimal, files, flag, garbled, is_decimal, line, mapped, natural, numbered, one_of
from probes.host.memory import mem_total_kb
from probes.pci.tree import function_behind

_UPTIME = re.compile(r"(\d{1,10}(?:\.\d{1,6})?)\s", re.ASCII)
_KERNEL = "/proc/sys/kernel"
_CPU = "/sys/devices/system/cpu"


def host(source: Source) -> Host:
    """``/proc``, ``/etc``, ``/sys/class/dmi/id``, ``/sys/devices/system``: each file on its own."""
    cpu = ask(source, "/proc/cpuinfo", cpuinfo)
    dmi = Dmi(**files(source, Dmi, DMI, **dict.fromkeys(fields(Dmi), line)))
    return Host(
        hostname=ask(source, f"{_KERNEL}/hostname", line),
        boot_id=ask(source, f"{_KERNEL}/random/boot_id", line),
        kernel_release=ask(source, f"{_KERNEL}/osrelease", line),
        kernel_version=ask(source, "/proc/version", line),
        cmdline=ask(source, "/proc/cmdline", line),
        cpu=cpu,
        online_cpus=ask(source, f"{_CPU}/online", cpulist),
        memory_kb=ask(source, "/proc/meminfo", mem_total_kb),
        dmi=dmi,
        dgx_release=ask(source, "/etc/dgx-release", release),
        os_release=ask(source, "/etc/os-release", release),
        container=_container(source),
        vm=virtual_machine(cpu, dmi, ask(source, "/sys/hypervisor/type", line)),
        numa_balancing=ask(source, f"{_KERNEL}/numa_balancing", decimal),
        cpufreq_driver=ask(source, f"{_CPU}/cpu0/cpufreq/scaling_driver", line),
        cpufreq_governor=ask(source, f"{_CPU}/cpu0/cpufreq/scaling_governor", line),
        cpu_policies=_policies(source),
        cpu_boost=_boost(source),
        present_cpus=ask(source, f"{_CPU}/present", cpulist),
        smt=ask(source, f"{_CPU}/smt/control", line),
        clock_source=ask(source, "/sys/devices/system/clocksource/clocksource0/current_clocksource", line),
        gpus_named=_states(source, STATED_NAMED),
        uptime_s=ask(source, "/proc/uptime", _uptime),
    )


def _uptime(text: str, where: str) -> float | Missing:
    """``864000.53 41472000.12``: seconds since boot, then those that all CPUs were idle."""
    match = _UPTIME.match(text)
    return garbled(text, where) if match is None else float(match[1])


def _policies(source: Source) -> tuple[CpuPolicy, ...] | Missing:
    """By number; other directories beside them belong to governors."""
    return mapped(numbered(source, f"{_CPU}/cpufreq", "policy"), lambda number: _policy(source, f"policy{number}"))


def _policy(source: Source, name: str) -> CpuPolicy:
    facts = files(source, CpuPolicy, f"{_CPU}/cpufreq/{name}", governor=line, limit_khz=decimal, highest_khz=decimal)
    return CpuPolicy(name=name, **facts)


def _boost(source: Source) -> bool | Missing:
    """``boost`` of acpi-cpufreq and amd-pstate, ``no_turbo`` of intel_pstate."""
    if not isinstance(boost := ask(source, f"{_CPU}/cpufreq/boost", decimal), Missing):
        return boost == 1
    no_turbo = ask(source, f"{_CPU}/intel_pstate/no_turbo", decimal)
    return boost if isinstance(no_turbo, Missing) else no_turbo == 0


@or_gap
def virtual_machine(cpu: Cpu | Missing, dmi: Dmi, hypervisor: str | Missing) -> str | None:
    """Whose guest this is: the CPU flag decides, for clouds sell bare metal under the same DMI vendor."""
    if not isinstance(hypervisor, Missing):
        return hypervisor
    if not need(need(cpu).hypervisor):
        return None
    return "a hypervisor" if isinstance(dmi.sys_vendor, Missing) else dmi.sys_vendor


_MARKS = {
    "/.dockerenv": "docker",
    "/run/.containerenv": "podman",
    "/.singularity.d": "apptainer",
    "/run/secrets/kubernetes.io": "kubernetes",
}
"""What container runtimes leave inside."""
_DIRECTORIES = ("/.singularity.d", "/run/secrets/kubernetes.io")


def _container(source: Source) -> str | Missing | None:
    if not isinstance(kind := ask(source, "/run/systemd/container", line), Missing):
        return kind
    gaps = [kind]
    for path, name in _MARKS.items():
        mark = source.names(path) if path in _DIRECTORIES else source.text(path)
        if not isinstance(mark, Missing):
            return name
        gaps.append(mark)
    if _states(source, STATED_CONTAINER):
        return "unnamed"
    return next((gap for gap in gaps if gap.gap is not Gap.ABSENT), None)


def _states(source: Source, key: str) -> bool:
    stated = source.stated()
    return not isinstance(stated, Missing) and stated.get(key) is True


_NEOVERSE_V2 = ("0x41", "0xd4f")
"""Implementer and part of Grace's cores, which have one thread each (Neoverse V2 manual, MPIDR_EL1.MT)."""


def cpuinfo(text: str, where: str) -> Cpu | Missing:
    """One block of ``name : value`` lines per online CPU; only x86 tells sockets, cores, flags and family."""
    first: dict[str, str] = {}
    blocks: list[dict[str, str]] = [{}]
    for row in text.splitlines():
        name, _, value = row.partition(":")
        name, value = name.strip(), value.strip()
        if name in ("processor", ""):  # the line between two blocks may be all that is left of where one begins
            blocks.append({})
        first.setdefault(name, value)
        blocks[-1].setdefault(name, value)
    threads = sum(is_decimal(block.get("processor", "")) for block in blocks)
    if not threads:
        return garbled(text, where)
    model = next((block[name] for block in blocks for name in ("model name", "cpu") if block.get(name)), "")
    flags = next((block[name] for block in blocks for name in ("flags", "Features") if name in block), None)
    sockets = {block["physical id"] for block in blocks if "physical id" in block}
    cores = {(block["physical id"], block["core id"]) for block in blocks if {"physical id", "core id"} <= block.keys()}
    one_thread = (first.get("CPU implementer"), first.get("CPU part")) == _NEOVERSE_V2
    return Cpu(
        model=model or Missing(Gap.UNSUPPORTED, where, "no model name"),
        sockets=len(sockets) or Missing(Gap.UNSUPPORTED, where, "no physical id"),
        cores=len(cores) or (threads if one_thread else Missing(Gap.UNSUPPORTED, where, "no core id")),
        threads=threads,
        vendor=first.get("vendor_id") or Missing(Gap.UNSUPPORTED, where, "no vendor_id"),
        family=_number(first, "cpu family", where),
        model_number=_number(first, "model", where),
        hypervisor="hypervisor" in flags.split() if flags is not None else Missing(Gap.UNSUPPORTED, where, "no flags"),
    )


def _number(first: dict[str, str], name: str, where: str) -> int | Missing:
    """A decimal of the first CPU; POWER has names (``model : 8335-GTH``)."""
    value = first.get(name, "")
    return int(value) if is_decimal(value) else Missing(Gap.UNSUPPORTED, where, f"no {name}")


def release(text: str, where: str) -> dict[str, str] | Missing:
    """``NAME="value"`` lines; other lines are passed over, of repeated names the last counts."""
    fields = {}
    for row in text.splitlines():
        name, equals, value = row.strip().partition("=")
        if equals and name.isascii() and name.isidentifier():
            value = value.strip()
            fields[name] = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
    return fields or garbled(text, where)


_SECTOR = 512  # the unit of ``size``, whatever the device's own sectors are
_NO_DISK = ("loop", "ram", "zram")
_WAY = LazyPattern(r"nvme\d+c\d+n\d+", "nvme", flags=re.ASCII)
"""One of the ways to ``nvme0n1``, which the kernel hides (``nvme_set_disk_name`` in ``drivers/nvme/host``)."""


def storage(source: Source) -> Storage:
    """``/sys/class/block``, in natural order."""
    if isinstance(names := source.names(BLOCK), Missing):
        return Storage(disks=names, arrays=names)
    whole = sorted(whole_devices(names), key=natural)
    arrays = tuple(_array(source, name) for name in whole if name.startswith("md"))
    return Storage(disks=tuple(_disk(source, name) for name in whole), arrays=arrays)


def whole_devices(names: tuple[str, ...]) -> tuple[str, ...]:
    """Names that are no partition of another (``sda1`` of ``sda``, ``nvme0n1p1`` of ``nvme0n1``) and can be a disk."""
    present = frozenset(names)
    can_be = (name for name in names if not name.startswith(_NO_DISK) and not _WAY.fullmatch(name))
    return tuple(name for name in can_be if not _is_partition(name, present))


def size_bytes(text: str, where: str) -> int | Missing:
    """Sectors of 512 bytes."""
    sectors = decimal(text, where)
    return sectors if isinstance(sectors, Missing) else sectors * _SECTOR


def _is_partition(name: str, present: frozenset[str]) -> bool:
    stem = name.rstrip("0123456789")
    if stem == name:
        return False
    parent = stem[:-1] if stem.endswith("p") else ""
    return (parent in present and parent[-1:].isdigit()) or stem in present


def _disk(source: Source, name: str) -> BlockDevice:
    facts = files(source, BlockDevice, f"{BLOCK}/{name}", size_bytes=size_bytes, rotational=flag, removable=flag,
                  model=line, vendor=line)  # fmt: skip
    return BlockDevice(name=name, **facts)


def _array(source: Source, name: str) -> MdArray:
    base = f"{BLOCK}/{name}"
    facts = files(source, MdArray, f"{base}/md", level=line, state=line, degraded=decimal, raid_disks=decimal)
    return MdArray(name=name, members=source.names(f"{base}/slaves"), **facts)


_INTERFACES = "/sys/class/net"
_NO_INTERFACE = "bonding_masters"  # a file of the bonding driver among the interfaces
_UNKNOWN_SPEED = ("-1", "4294967295")  # newer and older kernels
_OPERSTATES = ("unknown", "notpresent", "down", "lowerlayerdown", "testing", "dormant", "up")  # net/core/net-sysfs.c
operstate = one_of(dict(zip(_OPERSTATES, _OPERSTATES, strict=True)))
_OCTETS = LazyPattern(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){0,31}", "")


@or_gap
def network(source: Source) -> tuple[NetInterface, ...]:
    """``/sys/class/net``, in natural order."""
    names = sorted(need(source.names(_INTERFACES)), key=natural)
    return tuple(_interface(source, name) for name in names if name != _NO_INTERFACE)


def speed(text: str, where: str) -> int | Missing:
    """Mb/s."""
    body = text.strip()
    return Missing(Gap.UNSUPPORTED, where, body) if body in _UNKNOWN_SPEED else decimal(text, where)


def mac(text: str, where: str) -> str | Missing:
    """``00:25:90:ab:cd:ef``; a tunnel has no address and an empty file."""
    if not (body := text.strip()):
        return Missing(Gap.ABSENT, where, "empty")
    return body.lower() if _OCTETS.fullmatch(body) else garbled(text, where)


def _interface(source: Source, name: str) -> NetInterface:
    base = f"{_INTERFACES}/{name}"
    facts = files(source, NetInterface, base, operstate=operstate, carrier=flag, carrier_down_count=decimal,
                  speed_mbit=speed, mtu=decimal, type=decimal, mac=mac)  # fmt: skip
    return NetInterface(name=name, bdf=function_behind(source, f"{base}/device"), **facts)
