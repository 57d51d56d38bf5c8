"""The kernel gave up: panics, oopses, tasks that hang in the driver or elsewhere; a BMC that does not answer it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, Judge, component_of, host, remedy_of, saying
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, first_of, skip
from dgxcheck.checks.host.disks import by_disk
from dgxcheck.checks.kernel_log.device_log import events_of, grouped, happened, lines, nothing_logged, reach, warning
from dgxcheck.checks.kernel_log.memory import blame_memory, checked
from dgxcheck.checks.kernel_log.pcie import blame_fatal
from dgxcheck.checks.kernel_log.storage import blame_disk, blame_servers
from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.kernel_log import HcaTrouble, HostEvent, HostTrouble, KernelLog, is_near
from dgxcheck.facts.missing import need
from dgxcheck.facts.record import replace

_DRIVER = "nvidia"
"""Prefix of the driver's modules: nvidia, nvidia_uvm, nvidia_modeset, nvidia_peermem."""
_MLX5 = "mlx5"
"""Prefix of the modules of the HCAs' driver."""
SERVICES = ("nvidia-", "nv-hostengine", "nv-fabricmanage", "nvsm", "dcgm")
"""Prefixes of the names of NVIDIA's services; the kernel truncates names to 15 characters."""
BY_LIMIT = "cgroup"
"""Group of a process that reached the limit of its job or container."""
_WAITS_S = 300.0
"""A task is reported after two minutes in which it waited (``kernel.hung_task_timeout_secs``)."""
HostEventRule = Callable[[KernelLog, "Sequence[HostEvent]"], Judgement]


def of_host(rule: HostEventRule, nothing: str, *troubles: HostTrouble) -> Judge:
    """A judge of the host by its events of this trouble; ``nothing``: the message where the log has none.

    An excerpt without such an event says nothing of it: the kernel's end is what excerpts leave out.
    """

    def judge(box: Box) -> Judged:
        log = need(box.snapshot.kernel_log)
        events = events_of(log, *troubles)
        yield HOST, rule(log, events) if events else nothing_logged(log, nothing)

    return saying(rule, judge)


def _panic(log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    """Fails if the kernel panicked or hit a bug of its own (oops). Blames the NVIDIA driver only if the processor was
    executing its code, and hardware if a machine check caused the panic.

    Source: Linux Documentation/admin-guide/bug-hunting.rst; kernel/panic.c
    """
    panics = [event for event in events if event.trouble == "panic"]
    oopses = [event for event in events if event.trouble == "oops"]
    parts = [f"the kernel panicked: {panics[-1].part[:120]}"] if panics else []
    parts += [f"the kernel hit {counted(len(oopses), 'bug')} (oops)"] if oopses else []
    modules = [*dict.fromkeys(event.group for event in oopses if event.group)]
    at = f" in module {', '.join(modules)}" if modules else ""
    message = f"{'; '.join(parts)}{at}{reach(log)}"
    when = happened(events, "") if modules and all(each.startswith(_DRIVER) for each in modules) else ()
    return Judgement(
        Status.FAIL, message, len(events), 0, evidence=lines(log, events), fault=Fault.KERNEL_PANIC, events=when,
    )  # fmt: skip


def _blame_panic(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The driver where the processor was in its code, in that of mlx5 silent adapters; where hardware asked for the
    panic, the device with a fatal PCIe error or the memory with an uncorrected one at that time, or CPUs; else the
    kernel."""
    oopses = [event.group for event in events_of(box.log, "oops")]
    if asked := [event.seconds for event in events_of(box.log, "panic") if event.group]:
        yield from blame_fatal(box, asked, judgement)
        yield from blame_memory(box, asked, judgement)
        for event in events_of(box.log, "machine check"):
            if event.corrected is False and not event.past:
                yield checked(event)
        yield host_part("CPUs")
    elif oopses and oopses[0].startswith(_DRIVER):
        yield DRIVER
    else:
        if oopses and oopses[0].startswith(_MLX5):
            yield from _silent_adapters(box)
        yield host_part("kernel")


def _silent_adapters(box: Box) -> Iterator[Component]:
    """The adapters whose queues stalled or whose firmware does not respond, of those of mlx5_core."""
    silent = (event.bdf for event in box.log.hcas if event.trouble in _SILENT and not event.past)
    for bdf in dict.fromkeys(silent):
        yield component_of(box, Subject(kind="hca", name=bdf, bdf=bdf))


_SILENT: tuple[HcaTrouble, ...] = ("off bus", "firmware", "stalled")


def _hung(log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    names = first_of([*dict.fromkeys(map(_in_module, events))])
    locked = [event for event in events if "lockup" in event.line.lower()]
    what = "CPUs locked up" if len(locked) == len(events) else "tasks or CPUs hung"
    message = f"{what} {counted(len(events), 'time')}: {names}{reach(log)}"
    if all(event.part.startswith(SERVICES) and not event.group for event in events):
        return replace(warning(Fault.DRIVER_STUCK, message, log, events), events=happened(events, ""))
    case = "locked" if locked else "mlx5" if all(event.group.startswith(_MLX5) for event in events) else ""
    remedy = remedy_of("kernel.hung-task", case) if case else ""
    when = () if any(event.group for event in events) else happened(events, "")
    return replace(warning(Fault.TASKS_HUNG, message, log, events, remedy), events=when)


def _hung_tasks(box: Box) -> Judged:
    """Warns if a task was blocked for minutes, or a CPU locked up or stalled, outside the NVIDIA driver; for tasks in
    the driver see kernel.driver-stuck; and if the kernel switched off an interrupt that no driver handled. Where only
    nvidia-smi and services of NVIDIA were blocked, which do nothing but ask the driver, and no stack says otherwise,
    they were blocked by it.

    Source: Linux Documentation/admin-guide/lockup-watchdogs.rst, RCU/stallwarn.rst; kernel/hung_task.c,
    kernel/irq/spurious.c
    """
    yield from of_host(_hung, "no task or CPU hung elsewhere", "hung")(box)
    for part, events in grouped((event.part, event) for event in events_of(box.log, "interrupt off")).items():
        message = f"the kernel switched off {part}, which no driver handled{reach(box.log)}"
        yield replace(HOST, part=part), warning(Fault.INTERRUPT_OFF, message, box.log, events)


def _in_module(event: HostEvent) -> str:
    """``kworker/12:1 (module mlx5_core)``: the task, or CPUs, and the module in which it was."""
    return f"{event.part or 'CPUs'}{f' (module {event.group})' if event.group else ''}"


def _blame_hung(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The adapters in whose driver CPUs hang, and whose queues stalled (NVIDIA/NVSentinel issue 1334) or whose firmware
    does not respond; CPUs with errors at that time, or what tasks wait for, memory that ran out, a disk with
    errors or a file server that does not respond; the driver, where no stack says otherwise also if another task hung
    in it at that time; else the kernel."""
    if judgement.fault is Fault.DRIVER_STUCK:
        yield DRIVER
        return
    if judgement.fault is Fault.INTERRUPT_OFF:
        yield host_part(Fault.INTERRUPT_OFF.about[1], at.part)
        return
    hung = events_of(box.log, "hung")
    times = [event.seconds for event in hung]
    if any(event.group.startswith(_MLX5) for event in hung):
        yield from _silent_adapters(box)
    yield from _checked_at(box, times)
    for disk in dict.fromkeys(name for name, event in by_disk(box, box.log)
                              if is_near(event.seconds, times, _WAITS_S)):  # fmt: skip
        yield from blame_disk(box, Subject(kind="disk", name=disk, bdf=None), judgement)
    if any(not event.past for event in events_of(box.log, "file server")):
        yield from blame_servers(box)
    yield host_part("kernel")
    stuck = [each.seconds for each in events_of(box.log, "stuck")]
    if all(is_near(event.seconds, stuck, _WAITS_S) and not event.group for event in hung):
        yield DRIVER
    for event in events_of(box.log, "out of memory"):
        if event.group != BY_LIMIT and is_near(event.seconds, times, _WAITS_S):
            yield host_part("free memory")


def _checked_at(box: Box, times: Sequence[float]) -> Iterator[Component]:
    """CPUs with errors that were not corrected, at one of these times."""
    for event in events_of(box.log, "machine check"):
        if event.corrected is False and is_near(event.seconds, times, _WAITS_S):
            yield checked(event)


def _blame_stuck(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The driver; CPUs that had errors when one locked up in it."""
    yield DRIVER
    yield from _checked_at(box, [each.seconds for each in events_of(box.log, "stuck") if "lockup" in each.line.lower()])


def _stuck(log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    """Warns if a task was blocked for minutes, or a CPU locked up, in a function of the NVIDIA driver, and if
    nvidia-modeset waits for a GPU that makes no progress, or the driver for programs to let go of a GPU that is taken
    from it. Tasks that hang elsewhere are not judged, nor GPUs that are held and have fallen off the bus.

    Source: Linux kernel/hung_task.c and kernel/watchdog.c; the stack names the driver's module; of the driver
    src/nvidia-modeset, kernel-open/nvidia/nv-pci.c
    """
    held = [event for event in events if event.trouble == "held"]
    if events := [event for event in events if event.trouble != "held"]:
        names = first_of([*dict.fromkeys(map(_in_module, events))])
        message = f"tasks hung in it {counted(len(events), 'time')}: {names}{reach(log)}"
        return replace(warning(Fault.DRIVER_STUCK, message, log, events), events=happened(events, ""))
    names = first_of([event.part for event in held])
    message = f"it waits for programs that hold GPU {names}, which is taken from it{reach(log)}"
    if {each.bdf for each in log.off_bus}.issuperset(event.part for event in held):
        return Judgement(Status.PASS, message, evidence=lines(log, held))
    return warning(Fault.DRIVER_STUCK, message, log, held, remedy_of("kernel.driver-stuck", "held"))


_RESTART_S = 900.0
"""A BMC that restarts is silent for minutes."""


def _bmc(box: Box) -> Judged:
    """Warns if the kernel found no BMC at any interface (KCS, SSIF) that the firmware of a machine with HCAs declares,
    or if the BMC did not answer it for more than a quarter of an hour: sensors, event log and fans are not seen or set.

    Source: Linux drivers/char/ipmi: ipmi_si_intf.c, ipmi_kcs_sm.c, ipmi_msghandler.c

    A desktop's board can declare a BMC that it lacks; a machine with HCAs is none.
    """
    log = need(box.snapshot.kernel_log)
    events = events_of(log, "BMC")
    absent = [event for event in events if event.part != "garbled"]
    silent_s = _longest(event.seconds for event in events if event.part == "garbled")
    if absent and len(box.topology.gpus) < len(box.topology.devices):
        message = f"the kernel found no BMC where the firmware declares one{reach(log)}"
        yield HOST, Judgement(Status.WARN, message, evidence=lines(log, absent), fault=Fault.BMC_SILENT)
    elif silent_s >= _RESTART_S:
        message = f"the BMC did not answer the kernel for {silent_s / 60:.0f} minutes{reach(log)}"
        yield HOST, Judgement(Status.WARN, message, evidence=lines(log, events), fault=Fault.BMC_SILENT)
    elif events:
        why = "boards of desktops declare one that they lack" if absent else "as while it restarts"
        yield HOST, skip("not-supported", f"the BMC did not answer: {why}{reach(log)}", *lines(log, events))
    else:
        yield HOST, nothing_logged(log, "no BMC that does not answer")


def _longest(times: Iterable[float]) -> float:
    """Seconds of the longest time in which one came after the other as fast as a BMC restarts."""
    longest, begun, last = 0.0, 0.0, -inf
    for seconds in times:
        begun = begun if seconds - last < _RESTART_S else seconds
        longest, last = max(longest, seconds - begun), seconds
    return longest


CHECKS = (
    Check("kernel.driver-stuck", of_host(_stuck, "no task hung in the NVIDIA driver", "stuck", "held"), _blame_stuck),
    Check("kernel.panic", of_host(_panic, "no panic or oops logged", "panic", "oops"), _blame_panic),
    Check("kernel.hung-task", _hung_tasks, _blame_hung),
    Check("kernel.bmc", _bmc, host("BMC")),
)  # fmt: skip
