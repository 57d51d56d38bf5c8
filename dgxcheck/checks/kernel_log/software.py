"""Software in the kernel log: what drivers say of NVLinks as a whole, and in words that dgxcheck does not know;
programs that ended for lack of memory, files or table entries, and crashes in code of NVIDIA."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from dgxcheck.checks.engine.box import HOST, Box, unlisted_gpu
from dgxcheck.checks.engine.check import Blames, Check, component_of, remedy_of
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, first_of, judged
from dgxcheck.checks.kernel_log.device_log import (
    events_of,
    grouped,
    happened,
    lines,
    nothing_logged,
    reach,
    subject_at,
    warning,
)
from dgxcheck.checks.kernel_log.host import BY_LIMIT, SERVICES, of_host
from dgxcheck.components.component import DRIVER, FABRIC_MANAGER, Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import (
    GPU_DRIVER,
    DriverError,
    HostEvent,
    HostTrouble,
    KernelLog,
    LoggedEvent,
    Xid,
    is_near,
)
from dgxcheck.facts.missing import need, rows
from dgxcheck.facts.record import replace
from dgxcheck.xid.table import meaning

_OF_GPUS = ("xids", "sxids", "off_bus", "not_started", "modules")
_OF_HOST: tuple[HostTrouble, ...] = ("nvlink", "fabric", "no BAR")
_FINAL = {
    Fault.DRIVER_REBOOT: "its driver asks for a reboot",
    Fault.CONFIDENTIAL_COMPUTING: "its driver takes no more work in confidential computing mode",
}
_BESIDE_S = 60.0
_QUOTED = 160


def _driver_errors(box: Box) -> Judged:
    """Warns if the driver of the GPUs (NVRM, nvidia, nvidia-uvm, nvidia-nvlink, nvidia-nvswitch, nvidia-fs,
    nvidia_peermem) or of the HCAs (mlx5_core, mlx5_ib, efa) logged, since it was last loaded, an error that dgxcheck
    does not know, unless another check reports an event of that device or of the same minute; fails if such a line asks
    for a reboot and no GPU fell off the bus within a minute before it, or tells of a fatal error in confidential
    computing mode. Assertions, a module without a signature and refused commands of an HCA are no such errors.

    Source: the kernel log; NVIDIA open-gpu-kernel-modules, Linux drivers/net/ethernet/mellanox/mlx5,
    drivers/infiniband/hw/efa

    By driver and device; details of an event that another check reads pass.
    """
    log = need(box.snapshot.kernel_log)
    now = [error for error in log.driver_errors if not error.past]
    if not now:
        yield HOST, nothing_logged(log, "no unknown driver error")
    for place, own in grouped((f"{error.driver} {error.bdf}", error) for error in now).items():
        driver, _, bdf = place.partition(" ")
        at = _subject(box, driver, bdf) if bdf else replace(HOST, part=f"{driver} driver")
        final = [error for error in own if _final(error) is not None and not _follows_a_loss(log, error)]
        if left := final or [error for error in own if not _is_detail(log, error)]:
            yield at, _error(log, left)
        else:
            message = f"{counted(len(own), 'line')} beside what other checks read of this driver{reach(log)}"
            yield at, Judgement(Status.PASS, message, len(own), 0, "lines", lines(log, own))


def _final(error: DriverError) -> FaultKind | None:
    from dgxcheck.kernel_messages.driver_errors import final_fault  # with all other forms, where a log was read

    return final_fault(error.line)


def _subject(box: Box, driver: str, bdf: str) -> Subject:
    at = subject_at(box, bdf)
    if at.kind != "pci" or bdf in box.topology.functions:
        return at
    return unlisted_gpu(bdf) if driver == GPU_DRIVER else replace(at, kind="hca")


def _is_detail(log: KernelLog, error: DriverError) -> bool:
    """Of an event of its device, a PCIe error among them, or one that this driver logged within a minute; a program's
    own Xid has none."""
    events: list[LoggedEvent] = [*log.hcas] if error.driver != GPU_DRIVER else [*events_of(log, *_OF_HOST)]
    events += (each for each in log.pcie if each.severity != "corrected" and each.bdf == error.bdf)
    for name in _OF_GPUS if error.driver == GPU_DRIVER else ():
        events += getattr(log, name)
    return any(
        not event.past and not _is_of_program(event)
        and (getattr(event, "bdf", "") == (error.bdf or None) or not log.timed
             or abs(event.seconds - error.seconds) <= _BESIDE_S)
        for event in events
    )  # fmt: skip


def _follows_a_loss(log: KernelLog, error: DriverError) -> bool:
    """Did a GPU fall off the bus within a minute before? What is to be done about that includes a reboot."""
    return any(not lost.past and 0 <= error.seconds - lost.seconds <= _BESIDE_S for lost in log.off_bus)


def _is_of_program(event: LoggedEvent) -> bool:
    return isinstance(event, Xid) and meaning(event.number, None).severity == "application"


def _error(log: KernelLog, errors: Sequence[DriverError]) -> Judgement:
    other = len({error.line for error in errors}) - 1
    more = f", and {counted(other, 'other line')}" if other else ""
    fault = _final(errors[0]) or Fault.DRIVER_ERROR
    what = _FINAL.get(fault, "unknown driver error")
    message = f"{what}: {errors[0].line[:_QUOTED].rstrip(' .')}{more}{reach(log)}"
    return judged(fault, message, len(errors), 0, "lines", lines(log, errors), warns=True, fails=fault in _FINAL)


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    if at.kind == "host":
        yield DRIVER if at.part.startswith(GPU_DRIVER) else host_part("HCA driver")
    else:
        yield component_of(box, at)


_OF_NVLINKS: dict[HostTrouble, tuple[FaultKind, str]] = {
    "nvlink": (Fault.NVLINK_UNDETECTED, "could not detect which NVLinks of a GPU are connected"),
    "fabric": (Fault.FABRIC_OUT_OF_SYNC, "the driver's state of the NVSwitch fabric is out of date, NVLS fails"),
}


def _nvlinks(box: Box) -> Judged:
    """Warns if the driver logged, since it was last loaded, that it could not detect which NVLinks of a GPU are
    connected: peer transfers then take PCIe, and programs may hang; or that the state of the NVSwitch fabric that it
    knows is out of date, as after a restart of the fabric manager while jobs ran: NCCL then fails to set up NVLS.

    Source: NVIDIA's open-gpu-kernel-modules, src/nvidia/src/kernel/gpu/nvlink/kernel_nvlink.c and
    mem_mgr/mem_multicast_fabric.c
    """
    log = need(box.snapshot.kernel_log)
    found = {trouble: [event for event in events_of(log, trouble) if not event.past] for trouble in _OF_NVLINKS}
    if not any(found.values()):
        yield HOST, Judgement(Status.PASS, f"no failure to detect NVLinks logged{reach(log)}")
    for trouble, (fault, message) in _OF_NVLINKS.items():
        if events := found[trouble]:
            at = HOST if trouble == "nvlink" else replace(HOST, part=trouble)
            yield at, warning(fault, f"{message}{reach(log)}", log, events)


_UNITS = {
    "nv-fabricmanage": "nvidia-fabricmanager", "nvlsm": "nvidia-fabricmanager", "nvidia-imex": "nvidia-imex",
    "nvidia-persiste": "nvidia-persistenced", "nv-hostengine": "nvidia-dcgm", "opensm": "opensm", "slurmd": "slurmd",
}  # fmt: skip
"""By the name of a process its service: GPUs, fabric or scheduler miss it at once."""
_MANAGER = "nv-fabricmanage"
_BOUNCE = "bounce buffers"
_AFTER_A_RESET = "; from Hopper on start Fabric Manager once no job runs and nvidia-smi -r has reset all GPUs"
"""DU-09883; https://github.com/NVIDIA/nccl/issues/1488"""
_LIMITS = {
    "open files": (Fault.OUT_OF_FILES, "the limit of open files of the whole host was reached"),
    "ARP table": (Fault.NETWORK_TABLE_FULL, "the ARP table was full: other hosts are not reached"),
    "connection tracking": (Fault.NETWORK_TABLE_FULL, "the table of tracked connections was full: packets are dropped"),
}
"""By what was reached."""


def _memory(box: Box, log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    """A process that reached the limit of its own cgroup (job, container) passes, unless it is a service of NVIDIA.

    A service that is not seen to run again is due at once.
    """
    bad = [event for event in events if event.group != BY_LIMIT or event.part.startswith(SERVICES)]
    names = first_of([*dict.fromkeys(event.part for event in bad or events)])
    what = "host memory ran out" if any(event.group != BY_LIMIT for event in bad) else "a memory limit was reached"
    message = f"{what} {counted(len(bad or events), 'time')}; killed: {names}{reach(log)}"
    fault, then = Fault.OUT_OF_MEMORY if bad else None, remedy_of("kernel.out-of-memory", "service")
    return _ended(box, log, message, bad or events, fault, then)


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
        (fault, message), remedy = _LIMITS[part], remedy_of("kernel.out-of-memory", part)
        yield replace(HOST, part=part), warning(fault, f"{message}{reach(log)}", log, events, remedy)
    if events := events_of(log, "bounce buffers"):
        names = first_of([*dict.fromkeys(event.part for event in events)])
        message = f"transfers of {names} found no bounce buffer {counted(len(events), 'time')}{reach(log)}"
        yield replace(HOST, part=_BOUNCE), warning(Fault.BOUNCE_BUFFERS, message, log, events)


def _crashed(box: Box, log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    """Passes for programs that crashed by themselves; warns for services of NVIDIA and for crashes close to an Xid that
    is not of programs alone."""
    xids = [xid.seconds for xid in log.xids if meaning(xid.number, None).severity != "application"] if log.timed else []
    bad = [
        event for event in events
        if event.part.startswith(SERVICES) or event.group.startswith(SERVICES)
        or is_near(event.seconds, xids, _BESIDE_S)
    ]  # fmt: skip
    names = first_of([*dict.fromkeys(f"{event.part} in {event.group}" for event in bad or events)])
    crashes = counted(len(bad or events), "program crash", "program crashes")
    message = f"{crashes} in code of NVIDIA: {names}{reach(log)}"
    fault, then = Fault.PROGRAM_CRASHED if bad else None, remedy_of("kernel.program-crash", "service")
    return replace(_ended(box, log, message, bad or events, fault, then), events=happened(bad, ""))


def _crashes(box: Box) -> Judged:
    """Warns if a service of NVIDIA crashed, due at once where GPUs, fabric or scheduler need it and it is not seen to
    run again, or a program in one of NVIDIA's libraries (libcuda, libnccl ..) within a minute of an Xid that is not of
    programs alone. Other programs that crash there are no fault of the machine.

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
    Check("kernel.nvlink", _nvlinks, lambda box, at, judgement: (FABRIC_MANAGER if at.part else DRIVER,)),
    Check("kernel.out-of-memory", _memory_and_files, _blame("free memory")),
    Check("kernel.program-crash", _crashes, _blame("programs")),
    Check("kernel.driver-errors", _driver_errors, _blames),
)  # fmt: skip
