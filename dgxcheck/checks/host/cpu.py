"""The host's CPUs: present and online."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.blame import host
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, as_evidence, skip
from dgxcheck.checks.engine.host_limits import CPU_PARAMETERS, left_out, missing_socket
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.checks.engine.wording import counted
from dgxcheck.components.component import Component
from dgxcheck.facts.cpulist import cpulist, difference, ranges
from dgxcheck.facts.host import Cpu, Host
from dgxcheck.facts.missing import Missing, need
from dgxcheck.profiles.model import Number

_MISSING_SOCKET = (
    "read the BMC's event log (ipmitool sel elist) for the missing processor; its memory, GPUs and HCAs are"
    " missing with it; then cold power cycle, then call the vendor"
)
_ONLINE = "/sys/devices/system/cpu/online"


def offline_cpus(online: str) -> str:
    """CPU numbers that a list leaves out below its highest: ``20-39`` of ``0-19,40-59``."""
    runs = ranges(online) or ()
    ends = (0, *(run.stop for run in runs))
    return cpulist(range(end, run.start) for end, run in zip(ends, runs, strict=False) if run.start > end)


def sockets(box: Box) -> int | Missing:
    """Number of sockets with a CPU that is online."""
    cpu = _online(box)
    return cpu if isinstance(cpu, Missing) else cpu.sockets


def cores(box: Box) -> int | Missing:
    """Number of cores that are online."""
    cpu = _online(box)
    return cpu if isinstance(cpu, Missing) else cpu.cores


def _online(box: Box) -> Cpu | Missing:
    facts = box.snapshot.host
    return facts if isinstance(facts, Missing) else facts.cpu


def _cpu(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    yield HOST, ruled(_online_cpus, box)


def _online_cpus(box: Box) -> Judgement:
    facts, cpu = need(box.snapshot.host), need(_online(box))
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
        message += f"; CPU {offline} is offline" if offline.isdecimal() else f"; CPUs {offline} are offline"
    elif uneven:
        message += f", {counted(cpu.threads, 'thread')}: some are offline"
    fault = Fault.CPU_OFFLINE if offline or uneven else Fault.CPU_MISSING if few else None
    if fault is not None and (why := visibility.cpus_hidden(box)):
        return skip("not-visible", f"{why}: {message}", *evidence)
    status = Status.WARN if fault else Status.PASS
    if isinstance(reference, Judgement):
        return Judgement(status, message, evidence=evidence, fault=fault)
    remedy = _MISSING_SOCKET if fault is Fault.CPU_MISSING and any(missing_socket(box)) else ""
    return Judgement(
        status, message, need(cpu.cores), reference.value, "cores", evidence, fault=fault, remedy=remedy
    )  # fmt: skip


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
    if isinstance(online, Missing) or isinstance(cpu.cores, Missing) or one_thread:
        return ""
    if isinstance(present, Missing):
        return offline_cpus(online)
    return cpulist(difference(ranges(present) or (), ranges(online) or ()))


def _evidence(cpu: Cpu, online: str | Missing) -> tuple[Evidence, ...]:
    numbers = {"sockets": cpu.sockets, "cores": cpu.cores, "threads": cpu.threads}
    return (
        Evidence("/proc/cpuinfo", {key: as_evidence(value) for key, value in numbers.items()}),
        Evidence(_ONLINE, as_evidence(online)),
    )


def _blame(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The parameter that leaves CPUs out, a socket that is missing, else the CPUs."""
    yield from left_out(box, CPU_PARAMETERS)
    yield from missing_socket(box)
    yield from host("CPUs")(box, at, judgement)


CHECKS = (
    Check(
        id="host.cpu",
        rule="Warns if there are fewer sockets or cores than in the reference machine, if cores have unequal numbers of"
        " threads, or if a CPU below the highest online one is offline. An LXC container is not judged, because it sees"
        " its share only.",
        source="/proc/cpuinfo and /sys/devices/system/cpu/online against the profile",
        remedy="look for offline CPUs (lscpu -e), for maxcpus= and nr_cpus= in /proc/cmdline and for machine checks in"
        " the kernel log; set a CPU online with chcpu -e LIST; for a missing socket check the BMC's event log",
        judge=_cpu,
        blames=_blame,
    ),
)
