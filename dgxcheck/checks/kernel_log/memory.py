"""Errors of the host's memory and CPUs, by the kernel log: EDAC, machine checks and APEI."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check, host, own_remedy, per_host, remedy_of
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, first_of, judged
from dgxcheck.checks.host.memory import memory_modules, slots
from dgxcheck.checks.kernel_log.device_log import events_of, grouped, happened, lines, most_in_a_day, reach
from dgxcheck.checks.kernel_log.pcie import blame_fatal
from dgxcheck.components.component import Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import OF_IO, HostEvent, HostTrouble, KernelLog, is_near
from dgxcheck.facts.missing import need, rows
from dgxcheck.facts.record import replace
from dgxcheck.facts.sysfs import ranges
from dgxcheck.xid.relations import WINDOW_S

MemoryEventRule = Callable[[Box, KernelLog, Sequence[HostEvent]], Judgement]


def _by_part(box: Box, trouble: HostTrouble, rule: MemoryEventRule, nothing: str) -> Judged:
    """A judge of each controller, DIMM, CPU or socket that has such trouble, or of the host where none has.

    ``nothing``: the message where the log has no such line.
    """
    log, dimms = need(box.snapshot.kernel_log), slots(box)
    events = events_of(log, trouble)
    parts = grouped((dimms.get(event.part, event.group or event.part), event) for event in events)
    yield from ((replace(HOST, part=name), rule(box, log, own)) for name, own in parts.items())
    if not parts:
        yield HOST, Judgement(Status.PASS, f"{nothing}{reach(log)}")


def _errors(what: str, limit: str, fault: FaultKind, check: str) -> MemoryEventRule:
    """Uncorrected errors of this boot fail, those of the last one warn, as do corrected ones above a rate."""

    def rule(box: Box, log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
        bad = [event for event in events if event.corrected is False]
        good = [event for event in events if event.corrected is not False]
        numbers = [(each, sum(event.count for event in those)) for each, those in (("un", bad), ("", good)) if those]
        totals = ", ".join(f"{number} {each}corrected" for each, number in numbers)
        before = " before this boot" if all(event.past for event in events) else ""
        message = f"{what} logged{before}{_parts(events)}: {totals}"
        daily, most = most_in_a_day([(event.seconds, event.count) for event in good]), box.settings.limit(limit)
        if not bad:
            message = f"{message}, up to {daily} a day (limit {most:g}){reach(log)}"
            return judged(fault, message, daily, most, "errors", lines(log, good), warns=daily > most)
        now, number = any(not event.past for event in bad), sum(event.count for event in bad)
        message, remedy = f"{message}{reach(log)}", own_remedy(check, "uncorrected")
        return judged(fault, message, number, 0, "errors", lines(log, bad), warns=True, fails=now, remedy=remedy)

    return rule


def _parts(events: Sequence[HostEvent]) -> str:
    names = list(dict.fromkeys(event.part for event in events if event.part))
    return f" of {first_of(names)}" if names else ""


def _throttled(box: Box) -> Judgement:
    """Warns if temperature throttled a CPU more than {kernel.cpu-throttled} times since boot; fails if the machine
    reached the temperature at which the kernel shuts it down.

    Source: Linux drivers/thermal/intel/therm_throt.c, drivers/thermal/thermal_core.c
    """
    log = need(box.snapshot.kernel_log)
    if hot := events_of(log, "overheated"):
        message = f"the machine reached its critical temperature{reach(log)}"
        return Judgement(Status.FAIL, message, evidence=lines(log, hot), fault=Fault.OVERHEATING)
    events = events_of(log, "throttled")
    counts: dict[str, int] = {}
    for event in events:
        counts[event.part] = max(event.count, counts.get(event.part, 0))
    most, limit = max(counts.values(), default=0), box.settings.limit("kernel.cpu-throttled")
    if not events:
        return Judgement(Status.PASS, f"no CPU was throttled by temperature{reach(log)}")
    node = _only_node(box, counts)
    where = "" if node is None else f" of NUMA node {node}, none of the others,"
    message = f"{counted(len(counts), 'CPU')}{where} throttled by temperature, up to {most} times{reach(log)}"
    return judged(
        Fault.CPU_THROTTLED, message, most, limit, "events", lines(log, events), warns=most > limit,
        remedy="" if node is None else remedy_of("kernel.cpu-throttled", "one node").format(node=node),
    )  # fmt: skip


def _only_node(box: Box, cpus: Iterable[str]) -> int | None:
    """The NUMA node, of several, that has all of these CPUs (``CPU 28``)."""
    numbers = [int(cpu.removeprefix("CPU ")) for cpu in cpus]
    lists = {row.node: ranges(row.cpulist) or () for row in rows(box.snapshot.numa) if isinstance(row.cpulist, str)}
    having = [node for node, runs in lists.items() if any(number in run for number in numbers for run in runs)]
    with_cpus = [node for node, runs in lists.items() if runs]
    return having[0] if len(having) == 1 < len(with_cpus) and len(numbers) >= _FEWEST else None


_FEWEST = 4
"""CPUs; of fewer it is no sign that the others stayed cool."""


def blame_memory(box: Box, moments: Collection[float], judgement: Judgement) -> Iterator[Component]:
    """The DIMMs of which an uncorrected error was logged at one of these times."""
    for event in events_of(box.log, "memory"):
        if event.corrected is False and is_near(event.seconds, moments, WINDOW_S):
            part = slots(box).get(event.part, event.group or event.part)
            yield from memory_modules(box, replace(HOST, part=part), judgement)


_MEMORY = _errors("memory errors", "host.edac-corrected", Fault.DIMM_ERRORS, "host.edac")
_CPUS = _errors("machine checks", "kernel.machine-checks", Fault.MACHINE_CHECK, "kernel.machine-check")
def _memory(box: Box) -> Judged:
    """Per memory controller, DIMM or socket that the kernel log names: fails on an uncorrected memory error; warns on
    one that firmware kept from before this boot, and on more than {host.edac-corrected} corrected ones within a day;
    warns too if ECC is off on a machine with HCAs or a CPU of Intel's for servers.

    Source: EDAC, machine check and APEI records of the kernel (drivers/edac, drivers/acpi/apei)
    """
    yield from _by_part(box, "memory", _MEMORY, "no memory errors logged")
    off = events_of(box.log, "no ECC")
    if off and (_OF_DESKTOPS not in off[0].line or len(box.topology.gpus) < len(box.topology.devices)):
        message = f"ECC of host memory is off{reach(box.log)}"
        yield replace(HOST, part=_ECC), judged(Fault.MEMORY_ECC, message, evidence=lines(box.log, off), warns=True)


_ECC = Fault.MEMORY_ECC.about[1]
_OF_DESKTOPS = "EDAC amd64: "


def _blame_memory(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    yield from (host_part(_ECC),) if at.part == _ECC else memory_modules(box, at, judgement)


def _machine_checks(box: Box) -> Judged:
    """Per CPU and bank, or socket: fails on an uncorrected machine check that is no memory error; warns on one that was
    kept from before this boot, and on more than {kernel.machine-checks} corrected ones within a day. Fails on a system
    error of PCI (SERR, IOCK), and on one of I/O.

    Source: machine check records of the kernel; Intel SDM volume 3B, machine-check architecture; Linux
    arch/x86/kernel/nmi.c
    """
    return _by_part(box, "machine check", _machine_check, "no machine checks logged")


def _machine_check(box: Box, log: KernelLog, events: Sequence[HostEvent]) -> Judgement:
    judgement = _CPUS(box, log, events)
    if not events[-1].part.endswith(_OF_PCI):
        return judgement
    message = f"the chip set interrupted the CPUs: {events[-1].part}{reach(log)}"
    fault, remedy, times = Fault.AER_UNCORRECTABLE, remedy_of("kernel.machine-check", "PCI"), happened(events, "pcie")
    return replace(judgement, message=message, fault=fault, remedy=remedy, events=times)


_OF_PCI = ("(SERR)", "IOCK error", OF_IO)


def checked(event: HostEvent) -> Component:
    """What a machine check is of."""
    return host_part("PCIe links") if event.part.endswith(_OF_PCI) else host_part("CPUs", event.group or event.part)


def _blame_machine_check(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """CPUs; of a system error of PCI or I/O the device or DIMM with an error at that time, or PCIe links."""
    for event in events_of(box.log, "machine check"):
        if at.part.endswith(_OF_PCI) and event.part == at.part:
            yield from blame_fatal(box, [event.seconds], judgement)
            yield from blame_memory(box, [event.seconds], judgement)
    yield host_part("PCIe links") if at.part.endswith(_OF_PCI) else host_part("CPUs", at.part)


CHECKS = (
    Check("kernel.memory", _memory, _blame_memory),
    Check("kernel.machine-check", _machine_checks, _blame_machine_check),
    Check("kernel.cpu-throttled", per_host(_throttled), host("cooling")),
)  # fmt: skip
