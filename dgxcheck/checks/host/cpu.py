"""The host's CPUs: are all of them there and online?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine import visibility
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.expected import expected
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, skip
from dgxcheck.checks.engine.gaps import unjudged
from dgxcheck.facts.cpulist import cpulist, ranges
from dgxcheck.facts.host import Cpu
from dgxcheck.facts.missing import Missing

_ONLINE = "/sys/devices/system/cpu/online"


def left_out(online: str) -> str:
    """CPU numbers that a list leaves out below its highest: ``20-39`` of ``0-19,40-59``."""
    runs = ranges(online) or ()
    ends = (0, *(run.stop for run in runs))
    return cpulist(range(end, run.start) for end, run in zip(ends, runs, strict=False) if run.start > end)


def sockets(box: Box) -> int | Missing:
    """Sockets with a CPU that is online."""
    cpu = _online(box)
    return cpu if isinstance(cpu, Missing) else cpu.sockets


def cores(box: Box) -> int | Missing:
    """Cores that are online."""
    cpu = _online(box)
    return cpu if isinstance(cpu, Missing) else cpu.cores


def _online(box: Box) -> Cpu | Missing:
    host = box.snapshot.host
    return host if isinstance(host, Missing) else host.cpu


def _cpu(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    yield HOST, _judged(box)


def _judged(box: Box) -> Judgement:
    host = box.snapshot.host
    if isinstance(host, Missing):
        return unjudged(host)
    cpu = _online(box)
    if isinstance(cpu, Missing):
        return unjudged(cpu)
    said = _against_reference(box, cpu, host.online_cpus)
    offline = _offline(cpu, host.online_cpus)
    if offline and said.status is not Status.WARN:
        message = f"CPUs {offline} are offline, {cpu.threads} are online"
        said = Judgement(Status.WARN, message, evidence=_evidence(cpu, host.online_cpus))
    if said.status is Status.WARN and (why := visibility.share(box)):
        return skip("not-visible", f"{why}: {said.message}", *said.evidence)
    return said


def _against_reference(box: Box, cpu: Cpu, online: str | Missing) -> Judgement:
    due_sockets, due_cores = expected(box, "host.sockets"), expected(box, "host.cores")
    if isinstance(due_cores, Judgement):
        return due_cores
    if isinstance(cpu.cores, Missing):
        return unjudged(cpu.cores)
    evidence = _evidence(cpu, online)
    due = (cpu.cores, due_cores.value, "cores", evidence)
    if isinstance(due_sockets, Judgement) or isinstance(cpu.sockets, Missing):
        of_sockets = ""
    else:
        of_sockets = f"{cpu.sockets} of {due_sockets.value:g} sockets, "
        if cpu.sockets < due_sockets.value:
            return Judgement(Status.WARN, f"{of_sockets}{cpu.cores} of {due_cores.value:g} cores", *due)
    if cpu.cores < due_cores.value:
        return Judgement(Status.WARN, f"{of_sockets}{cpu.cores} of {due_cores.value:g} cores", *due)
    if cpu.threads % cpu.cores:
        return Judgement(Status.WARN, f"{cpu.threads} threads on {cpu.cores} cores: some are offline", *due)
    return Judgement(Status.PASS, f"{of_sockets}{cpu.cores} of {due_cores.value:g} cores", *due)


def _offline(cpu: Cpu, online: str | Missing) -> str:
    """CPUs that were taken offline; with one thread per core these may be the second threads, which a site switches
    off on purpose, and POWER, which counts its threads in eights, says nothing of cores."""
    if isinstance(online, Missing) or isinstance(cpu.cores, Missing) or cpu.threads == cpu.cores:
        return ""
    return left_out(online)


def _evidence(cpu: Cpu, online: str | Missing) -> tuple[Evidence, ...]:
    counted = {"sockets": cpu.sockets, "cores": cpu.cores, "threads": cpu.threads}
    return (
        Evidence("/proc/cpuinfo", {key: _plain(value) for key, value in counted.items()}),
        Evidence(_ONLINE, _plain(online)),
    )


def _plain(value: int | str | Missing) -> int | str:
    return value.reason if isinstance(value, Missing) else value


CHECKS = (
    Check(
        id="host.cpu",
        rule="Warns where sockets or cores are fewer than the reference machine's, where its cores have unlike numbers"
        " of threads, or where a CPU below the highest one online is offline. A container of LXC is not judged by its"
        " share.",
        source="/proc/cpuinfo and /sys/devices/system/cpu/online against the profile",
        remedy="look for offline CPUs (lscpu), maxcpus= in the kernel's command line and machine checks in its log; a"
        " socket that is gone is for the firmware's event log",
        judge=_cpu,
    ),
)
