"""Programs that ended: memory, files and tables that ran out, crashes in code of NVIDIA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Blames, Check
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, first_of
from dgxcheck.checks.kernel_log.device_log import events_of, grouped, lines, reach
from dgxcheck.checks.kernel_log.host import BY_LIMIT, SERVICES, of_host, warning
from dgxcheck.components.component import FABRIC_MANAGER, Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import HostEvent, KernelLog
from dgxcheck.facts.missing import rows
from dgxcheck.facts.record import replace

_UNITS = {
    "nv-fabricmanage": "nvidia-fabricmanager", "nvlsm": "nvidia-fabricmanager", "nvidia-imex": "nvidia-imex",
    "nvidia-persiste": "nvidia-persistenced", "nv-hostengine": "nvidia-dcgm", "opensm": "opensm", "slurmd": "slurmd",
}  # fmt: skip
"""By the name of a process its service: GPUs, fabric or scheduler miss it at once."""
_MANAGER = "nv-fabricmanage"
_BESIDE_S = 60.0
_BOUNCE = "bounce buffers"
_LESS_MEMORY = "find what takes the memory (ps, slabtop, /dev/shm) and limit it, or give jobs less"
_AFTER_A_RESET = "; from Hopper on start Fabric Manager once no job runs and nvidia-smi -r has reset all GPUs"
"""DU-09883; https://github.com/NVIDIA/nccl/issues/1488"""
_LIMITS = {
    "open files": (Fault.OUT_OF_FILES, "the limit of open files of the whole host was reached",
        "find which program holds them (/proc/sys/fs/file-nr, lsof) and restart it; raise fs.file-max only where that"
        " many are meant"),
    "ARP table": (Fault.NETWORK_TABLE_FULL, "the ARP table was full: other hosts are not reached",
        "compare the entries (ip neigh | wc -l) with sysctl net.ipv4.neigh.default.gc_thresh3 (of IPv6 net.ipv6);"
        " where so many hosts and containers share a network, raise gc_thresh1 to gc_thresh3 together"),
    "connection tracking": (Fault.NETWORK_TABLE_FULL, "the table of tracked connections was full: packets are dropped",
        "compare sysctl net.netfilter.nf_conntrack_count with nf_conntrack_max; find who opens so many (conntrack -L);"
        " where they are meant, raise nf_conntrack_max, or exempt the traffic of jobs and storage (notrack)"),
}  # fmt: skip
"""By what was reached."""


def _memory(box: Box, log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    """A process that reached the limit of its own cgroup (job, container) passes, unless it is a service of NVIDIA.

    A service that is not seen to run again is due at once.
    """
    bad = [event for event in events if event.group != BY_LIMIT or event.part.startswith(SERVICES)]
    names = first_of([*dict.fromkeys(event.part for event in bad or events)])
    what = "host memory ran out" if any(event.group != BY_LIMIT for event in bad) else "a memory limit was reached"
    message = f"{what} {counted(len(bad or events), 'time')}; killed: {names}{reach(log)}"
    return _ended(box, log, message, bad or events, Fault.OUT_OF_MEMORY if bad else None, f"then {_LESS_MEMORY}")


def _ended(
    box: Box, log: KernelLog, message: str, events: Sequence[HostEvent], fault: FaultKind | None, then: str
) -> Judgement:
    """Passes without a fault; a service that is not seen to run again is one of its own."""
    if fault is None:
        return Judgement(Status.PASS, message, evidence=lines(log, events))
    if start := _start_again(box, events):
        return warning(Fault.SERVICE_KILLED, message, log, events, f"{start}; {then}")
    return warning(fault, message, log, events)


def _start_again(box: Box, events: Sequence[HostEvent]) -> str:
    """What brings back the services that ended and are not seen to run again; empty where there are none."""
    running = {row.name for row in rows(box.snapshot.units) if row.running is True}
    gone = [*dict.fromkeys(unit for event in events if (unit := _UNITS.get(event.part)) and unit not in running)]
    fabric = _AFTER_A_RESET if _UNITS[_MANAGER] in gone else ""
    return f"systemctl status {' '.join(gone)}: start again what does not run{fabric}" if gone else ""


def _memory_and_files(box: Box) -> Judged:
    """Warns if the kernel killed processes because host memory ran out, or a service of NVIDIA at a limit of its own,
    due at once where a service of GPUs, fabric or scheduler is not seen to run again; if the limit of open files of the
    whole host was reached or its ARP table or that of tracked connections was full, and if a device found no
    bounce buffer (swiotlb). Other processes that reach the limit of their job or container are not a fault.

    Source: Linux mm/oom_kill.c, fs/file_table.c, net/netfilter/nf_conntrack_core.c, kernel/dma/swiotlb.c;
    Documentation/admin-guide/mm/concepts.rst, networking/ip-sysctl.rst (gc_thresh3)
    """
    yield from of_host(partial(_memory, box), "no process killed for lack of memory", "out of memory")(box)
    log = box.log
    for part, events in grouped((event.part, event) for event in events_of(log, "limit reached")).items():
        fault, message, remedy = _LIMITS[part]
        yield replace(HOST, part=part), warning(fault, f"{message}{reach(log)}", log, events, remedy)
    if events := events_of(log, "bounce buffers"):
        names = first_of([*dict.fromkeys(event.part for event in events)])
        message = f"transfers of {names} found no bounce buffer {counted(len(events), 'time')}{reach(log)}"
        yield replace(HOST, part=_BOUNCE), warning(Fault.BOUNCE_BUFFERS, message, log, events)


def _crashed(box: Box, log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    """Passes for programs that crashed by themselves; warns for services of NVIDIA and for crashes close to an Xid."""
    bad = [
        event for event in events
        if event.part.startswith(SERVICES) or event.group.startswith(SERVICES)
        or any(abs(xid.seconds - event.seconds) <= _BESIDE_S for xid in log.xids if log.timed)
    ]  # fmt: skip
    names = first_of([*dict.fromkeys(f"{event.part} in {event.group}" for event in bad or events)])
    crashes = counted(len(bad or events), "program crash", "program crashes")
    message = f"{crashes} in code of NVIDIA: {names}{reach(log)}"
    return _ended(box, log, message, bad or events, Fault.PROGRAM_CRASHED if bad else None, _DUMP)


_DUMP = "read its own log, and send its core dump to its vendor if it crashes again (coredumpctl info)"


def _crashes(box: Box) -> Judged:
    """Warns if a service of NVIDIA crashed, due at once where GPUs, fabric or scheduler need it and it is not seen to
    run again, or within a minute of an Xid a program in one of NVIDIA's libraries (libcuda, libnccl ..). Other programs
    that crash there are no fault of the machine.

    Source: Linux arch/x86/mm/fault.c: segfault at ADDRESS ip .. in LIBRARY
    """
    return of_host(partial(_crashed, box), "no crash in code of NVIDIA logged", "crashed")(box)


def _blame(part: str) -> Blames:
    """What ends programs, and Fabric Manager, where that is the service which it ended."""

    def blame(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
        yield host_part(at.part or part)
        ended = (event.part for event in events_of(box.log, "out of memory", "crashed"))
        if judgement.fault is Fault.SERVICE_KILLED and _MANAGER in ended:
            yield FABRIC_MANAGER

    return blame


CHECKS = (
    Check("kernel.out-of-memory", _memory_and_files,
        _blame("free memory"),
        remedy=f"{_LESS_MEMORY}; restart the services that were killed (systemctl --failed)"),
    Check("kernel.program-crash", _crashes, _blame("programs"),
        remedy=Fault.PROGRAM_CRASHED.remedy),
)  # fmt: skip
