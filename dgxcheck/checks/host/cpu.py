"""The CPUs: their number, their clocks and governor, and the clock source of the kernel."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine import host_limits
from dgxcheck.checks.engine.box import Box, guest
from dgxcheck.checks.engine.check import Check, host, per_host, remedy_of
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.finding import (
    Evidence,
    Judgement,
    Status,
    Subject,
    as_evidence,
    counted,
    first_of,
    judged,
    skip,
)
from dgxcheck.checks.engine.host_limits import CPU_PARAMETERS, left_out, missing_socket
from dgxcheck.components.component import Component
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.host import Cpu, CpuPolicy, Host
from dgxcheck.facts.missing import Missing, need, or_gap, rows
from dgxcheck.facts.sysfs import cpulist, difference, ranges
from dgxcheck.facts.typical import unlike_most
from dgxcheck.profiles.model import Number


def offline_cpus(online: str, number: int) -> str:
    """CPU numbers that a list leaves out below its highest, or that of so many CPUs: ``20-39`` of ``0-19,40-59``."""
    runs = ranges(online) or ()
    runs = (*runs, range(number, number)) if runs and runs[-1].stop < number else runs
    ends = (0, *(run.stop for run in runs))
    return cpulist(range(end, run.start) for end, run in zip(ends, runs, strict=False) if run.start > end)


@or_gap
def sockets(box: Box) -> int | Missing:
    """Number of sockets with a CPU that is online."""
    return need(box.snapshot.known_host.cpu).sockets


@or_gap
def cores(box: Box) -> int | Missing:
    """Number of cores that are online."""
    return need(box.snapshot.known_host.cpu).cores


def _online_cpus(box: Box) -> Judgement:
    """Warns if there are fewer sockets or cores than in the reference machine, if cores have unequal numbers of
    threads, or if a CPU below the highest online one is offline. An LXC container is not judged, because it sees its
    share only.

    Source: /proc/cpuinfo and /sys/devices/system/cpu/online against the profile
    """
    facts = box.snapshot.known_host
    cpu = need(facts.cpu)
    offline, reference = _offline(cpu, facts), expected(box, "host.cores")
    evidence = _evidence(cpu, facts.online_cpus)
    if isinstance(reference, Judgement):
        if not offline:
            return reference
        few = uneven = False
        message = f"{counted(cpu.threads, 'CPU')} online"
    else:
        few, message = _against_reference(box, cpu, need(cpu.cores), reference)
        uneven = bool(cpu.threads % need(cpu.cores))
    if offline:
        message = f"CPU{' ' if offline.isdecimal() else 's '}{offline} offline; {message}"
    elif uneven:
        message += f", {counted(cpu.threads, 'thread')}: some are offline"
    fault = Fault.CPU_OFFLINE if offline or uneven else Fault.CPU_MISSING if few else None
    if fault is not None and (why := host_limits.cpus_hidden(box)):
        return skip("not-visible", f"{why}: {message}", *evidence)
    status = Status.WARN if fault else Status.PASS
    if isinstance(reference, Judgement):
        return Judgement(status, message, evidence=evidence, fault=fault)
    remedy = remedy_of("host.cpu", "missing socket") if fault is Fault.CPU_MISSING and any(missing_socket(box)) else ""
    figures = (need(cpu.cores), reference.value, "cores")
    return Judgement(status, message, *figures, evidence, fault=fault, remedy=remedy)


def _against_reference(box: Box, cpu: Cpu, present: int, reference: Number) -> tuple[bool, str]:
    """Are there fewer sockets or cores than in the reference machine? And the numbers in words."""
    message = f"{present} of {counted(int(reference.value), 'core')}"
    reference_sockets = expected(box, "host.sockets")
    if isinstance(reference_sockets, Judgement) or isinstance(cpu.sockets, Missing):
        return present < reference.value, message
    few = cpu.sockets < reference_sockets.value or present < reference.value
    return few, f"{cpu.sockets} of {counted(int(reference_sockets.value), 'socket')}, {message}"


def _offline(cpu: Cpu, host_facts: Host) -> str:
    """CPUs that were taken offline, of those present where the kernel lists them.

    With one thread per core these may be the second threads, which a site switches off on purpose; POWER, which counts
    its threads in eights, does not report cores.
    """
    online, present = host_facts.online_cpus, host_facts.present_cpus
    one_thread = cpu.threads == cpu.cores and host_facts.smt not in ("on", "notsupported", "notimplemented")
    if isinstance(online, Missing) or isinstance(cpu.cores, Missing):
        return ""
    if one_thread and sum(map(len, ranges(online) or ())) >= cpu.threads:
        return ""
    if isinstance(present, Missing):
        return offline_cpus(online, cpu.threads)
    return cpulist(difference(ranges(present) or (), ranges(online) or ()))


def _evidence(cpu: Cpu, online: str | Missing) -> tuple[Evidence, ...]:
    numbers = {"sockets": cpu.sockets, "cores": cpu.cores, "threads": cpu.threads}
    return (
        Evidence("/proc/cpuinfo", {key: as_evidence(value) for key, value in numbers.items()}),
        Evidence("/sys/devices/system/cpu/online", as_evidence(online)),
    )


def _blame(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The parameter that leaves CPUs out, a socket that is missing, else the CPUs."""
    yield from left_out(box, CPU_PARAMETERS)
    yield from missing_socket(box)
    yield from host("CPUs")(box, at, judgement)


_POLICIES = "/sys/devices/system/cpu/cpufreq"
_SLOW_SOURCES = ("hpet", "acpi_pm", "pit", "jiffies", "refined-jiffies")
"""Each read of these takes a microsecond or more, where the time stamp counter takes 20 ns."""


def _limits(box: Box) -> Judgement:
    """Warns if boost is off, if the limit of a CPU's clock is below its highest clock, and if some CPUs have another
    governor than most.

    Source: cpufreq/boost, intel_pstate/no_turbo and cpufreq/policy* of /sys/devices/system/cpu
    """
    facts = box.snapshot.known_host
    if isinstance(facts.cpu_policies, Missing) and isinstance(facts.cpu_boost, Missing):
        need(facts.cpu_policies)
    policies = rows(facts.cpu_policies)
    wrong = [*_lowered(policies), *_governors(policies)]
    if facts.cpu_boost is False:
        wrong.insert(0, ("boost (turbo) is off", Evidence(f"{_POLICIES}/boost", False)))
    if not wrong:
        return Judgement(Status.PASS, "no setting keeps CPUs below their highest clock")
    message = "; ".join(text for text, _ in wrong)
    return Judgement(Status.WARN, message, evidence=tuple(fact for _, fact in wrong), fault=Fault.CPU_CLOCK)


def _lowered(policies: Sequence[CpuPolicy]) -> Iterator[tuple[str, Evidence]]:
    """CPUs whose limit is below what they can do; cores of one kind can have different highest clocks."""
    limits = ((policy.name, policy.limit_khz, policy.highest_khz) for policy in policies)
    low = {name: limit for name, limit, highest in limits
           if isinstance(limit, int) and isinstance(highest, int) and limit < highest}  # fmt: skip
    if low:
        ghz = min(low.values()) / 1e6
        yield f"limited to {ghz:g} GHz: {first_of([*low])}", Evidence(f"{_POLICIES}/*/scaling_max_freq", {**low})


def _governors(policies: Sequence[CpuPolicy]) -> Iterator[tuple[str, Evidence]]:
    """A governor that differs from that of most CPUs; what most have is host.governor's."""
    governors = {policy.name: policy.governor for policy in policies if isinstance(policy.governor, str)}
    if len({*governors.values()}) > 1:
        usual, odd = unlike_most(governors)
        words = ", ".join(dict.fromkeys(odd.values()))
        text = f"{first_of([*odd])} with governor {words}, {counted(len(governors) - len(odd), 'other')} with {usual}"
        yield text, Evidence(f"{_POLICIES}/*/scaling_governor", {**odd})


def _clock_source(box: Box) -> Judgement:
    """Warns if the kernel does not take the time from the CPU's time stamp counter but from a slow timer of the chip
    set: it found the counter unstable, or a parameter chose it. Not judged in virtual machines.

    Source: current_clocksource of /sys/devices/system/clocksource; the kernel log (arch/x86/kernel/tsc.c)
    """
    marked = next((event for event in box.log.host if event.trouble == "clock"), None)
    if marked is not None and guest(box) is None:
        message = f"the kernel marked the time stamp counter unstable: {marked.part}"
        logged = (Evidence("kernel log", marked.line),)
        return Judgement(Status.WARN, message, evidence=logged, fault=Fault.CLOCK_SOURCE)
    name = need(box.snapshot.known_host.clock_source)
    evidence = (Evidence("/sys/devices/system/clocksource/clocksource0/current_clocksource", name),)
    if (vm := guest(box)) is not None:
        return skip("not-visible", f"{vm} gives its guest a clock of its own: {name}", *evidence)
    slow = name in _SLOW_SOURCES
    message = f"clock source {name}" + (", expected tsc" if slow else "")
    return judged(Fault.CLOCK_SOURCE, message, name, "tsc" if slow else None, evidence=evidence, warns=slow)


_CPUFREQ = "/sys/devices/system/cpu/cpu0/cpufreq"
_SCALING = ("intel_pstate", "amd-pstate", "amd_pstate", "amd-pstate-epp", "amd_pstate_epp")
"""Drivers whose governors only bias what the CPU decides: https://docs.kernel.org/admin-guide/pm/intel_pstate.html"""

_AS_TOLD = ("acpi-cpufreq", "cppc_cpufreq")
"""Drivers that set the clock that the governor asks for; the second is that of Grace and other Arm servers."""


def _scaling(box: Box) -> Judgement:
    """With the drivers acpi-cpufreq and cppc_cpufreq (Arm), warns if the governor is not performance. All governors of
    intel_pstate and amd-pstate follow the load and pass; other drivers are not judged.

    Source: scaling_driver and scaling_governor of /sys/devices/system/cpu/cpu0/cpufreq; of Grace
    https://nvidia.github.io/grace-cpu-benchmarking-guide/platform/index.html
    """
    facts = box.snapshot.known_host
    driver, governor = need(facts.cpufreq_driver), need(facts.cpufreq_governor)
    evidence = (Evidence(f"{_CPUFREQ}/scaling_driver", driver), Evidence(f"{_CPUFREQ}/scaling_governor", governor))
    if driver in _SCALING:
        return Judgement(Status.PASS, f"governor {governor} of {driver}, which follows the load", evidence=evidence)
    if driver not in _AS_TOLD:
        return skip("not-supported", f"governors of {driver} are not judged", *evidence)
    other = governor != "performance"
    message = f"governor {governor} of {driver}" + (", expected performance" if other else "")
    return judged(Fault.GOVERNOR, message, governor, "performance", "", evidence, warns=other)


CHECKS = (
    Check("host.cpu", per_host(_online_cpus), _blame),
    Check("host.cpu-clock", per_host(_limits), host("CPU clock setting")),
    Check("host.clock-source", per_host(_clock_source), host("clock source")),
    Check("host.governor", per_host(_scaling), host("CPU frequency governor")),
)  # fmt: skip
