"""The host: CPUs, memory, kernel, firmware, release, container or virtual machine."""

from __future__ import annotations

import re

from dgxcheck.facts.host import STATED_CONTAINER, STATED_NAMED, Cpu, CpuPolicy, Dmi, Host
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.record import fields
from dgxcheck.facts.sysfs import DMI
from dgxcheck.source.protocol import Source
from probes.ask import ask, cpulist, decimal, files, garbled, is_decimal, line, mapped, numbered
from probes.host.memory import mem_total_kb

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
    threads = 0
    first: dict[str, str] = {}
    models: list[str] = []
    flags: list[str] = []
    sockets: set[str] = set()
    cores: set[tuple[str, str]] = set()
    socket = ""
    for row in text.splitlines():
        name, _, value = row.partition(":")
        name, value = name.rstrip(), value.strip()
        first.setdefault(name, value)
        if name == "processor" and is_decimal(value):
            threads += 1
            socket = ""
        elif name in ("model name", "cpu") and value and not models:
            models.append(value)
        elif name in ("flags", "Features") and not flags:
            flags.append(value)
        elif name == "physical id":
            socket = value
            sockets.add(value)
        elif name == "core id" and socket:
            cores.add((socket, value))
    if not threads:
        return garbled(text, where)
    part = first.get("CPU implementer"), first.get("CPU part")
    return Cpu(
        model=models[0] if models else Missing(Gap.UNSUPPORTED, where, "no model name"),
        sockets=len(sockets) or Missing(Gap.UNSUPPORTED, where, "no physical id"),
        cores=len(cores) or (threads if part == _NEOVERSE_V2 else Missing(Gap.UNSUPPORTED, where, "no core id")),
        threads=threads,
        vendor=first.get("vendor_id") or Missing(Gap.UNSUPPORTED, where, "no vendor_id"),
        family=_number(first, "cpu family", where),
        model_number=_number(first, "model", where),
        hypervisor="hypervisor" in flags[0].split() if flags else Missing(Gap.UNSUPPORTED, where, "no flags"),
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
