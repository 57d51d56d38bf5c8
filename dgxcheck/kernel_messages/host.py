"""Messages about the host: the kernel or a program gave up, tasks and CPUs that hang, memory that ran out, heat.

Linux kernel/panic.c, arch/x86/mm/fault.c, arch/arm64/kernel/traps.c, kernel/hung_task.c, kernel/watchdog.c,
kernel/rcu/tree_stall.h, mm/oom_kill.c, arch/x86/kernel/traps.c, tsc.c and nmi.c; kernel/dma/swiotlb.c;
drivers/thermal/intel/therm_throt.c, thermal_core.c; kernel/reboot.c; net/sched/sch_generic.c; drivers/char/ipmi;
fs/file_table.c, net/core/neighbour.c, net/netfilter/nf_conntrack_core.c, kernel/irq/spurious.c; of the
NVIDIA driver src/nvidia-modeset, kernel-open/nvidia/nv-pci.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.bdf import PATTERN
from dgxcheck.facts.kernel_log import HostEvent
from dgxcheck.facts.record import replace
from dgxcheck.kernel_messages.form import Form, Lines, first_match, host_event
from dgxcheck.lazy_pattern import LazyPattern

FRAMES_S = 1.0
"""The stack follows its heading within this time."""
_THROTTLED = Form(
    " temperature ", r"(?:is )?above threshold, cpu clock (?:is )?throttled \(total events = (?P<count>\d{1,12})\)",
    before=r"(?:mce: )?CPU(?P<cpu>\d{1,5}): (?:Core|Package)",
)  # fmt: skip
_OVERHEATED = (
    Form(
        "critical temperature reached", r"(?: \(\d{1,4} C\))?(?:, ?shutting down)?$",
        before=r"thermal (?P<zone>thermal_zone\d{1,3}): (?:[\w.-]{1,20}: )?",
    ),
    Form("HARDWARE PROTECTION shutdown (", r"Temperature too high\)", before="(?:reboot: )?"),
)  # fmt: skip
_STUCK = (
    Form("INFO: task ", r"(?P<task>.{1,16}):\d{1,10} blocked for more than \d{1,6} seconds"),
    Form(
        "watchdog: BUG: soft lockup - CPU#", r"\d{1,5} stuck for \d{1,8}s! \[(?P<task>.{1,16}):\d{1,10}\]",
        before="(?:NMI )?",
    ),
    Form("Watchdog detected hard LOCKUP on cpu ", r"\d{1,5}", before=r"(?:NMI )?watchdog: (?:CPU\d{1,5}: )?"),
)  # fmt: skip
_STALLED = (
    Form("INFO: rcu", r"\w{0,20} (?:self-)?detected (?:expedited )?stall", before="(?:rcu: )?"),
    Form("BUG: soft lockup - CPU#", r"\d{1,5} stuck for \d{1,8}s! \[(?P<task>.{1,16}):\d{1,10}\]"),
)
_FUNCTION = (
    r"(?:RIP: [0-9a-f]{4}:)? {0,8}(?:\[<[0-9a-f]{8,16}>\] {1,2}){0,2}(?:\? {1,2})?"
    r"[\w.]{1,120}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8}"
)
_FRAME = Form(" [nvidia", r"(?P<module>\w{0,20})\]", before=_FUNCTION, forgeable=True)
"""A function of the NVIDIA driver on a stack, with its address before Linux 4.10 (commit bb5e5ce545f2); the name of
a process can begin so too."""
_OF_HCA = Form(
    " [mlx5", r"_\w{2,10}\]", before=rf"{_FUNCTION}(?= \[(?P<module>mlx5_\w{{2,10}}))", forgeable=True
)
_GIVEN_UP = rf"(?:minor )?device (?P<device>{PATTERN}|\d{{1,3}})"
_HELD = Form("NVRM: Attempting to remove ", rf"{_GIVEN_UP} with non-zero usage count!")
_LET_GO = Form("NVRM: Continuing with GPU removal for ", _GIVEN_UP)
_PANIC = Form("Kernel panic - not syncing: ", r"(?P<why>.{0,200})")
_BY_HARDWARE = LazyPattern(
    r"(?:Fatal|Uncorrect\w{0,5}|Machine|Timeout).{0,40}(?:machine check|hardware error)|"
    r"Timeout: Not all CPUs entered broadcast|NMI(?: IOCK error)?: Not continuing",
    flags=re.IGNORECASE,
)
"""Reasons that arch/x86/kernel/cpu/mce/core.c, drivers/acpi/apei/ghes.c and nmi.c give."""
_OOPS = (
    Form("BUG: unable to handle "),
    Form("BUG: kernel NULL pointer dereference"),
    Form("Unable to handle kernel "),
    Form("general protection fault", "[,:] "),
    Form("kernel BUG at ", r"[\w./-]{1,120}:\d"),
    Form(
        ": ", r"(?:[A-Za-z][A-Za-z ,-]{0,80}(?:0x[0-9a-f]{1,16})?: )?[0-9a-f]{4,16} \[#\d{1,4}\] [PS]",
        before="(?:Oops|Internal error)",
    ),
)  # fmt: skip
_AT = (
    Form("RIP: ", r"[0-9a-f]{4}:[\w.]{1,120}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} \[(?P<module>[\w-]{1,56})"),
    Form("pc : ", r"[\w.]{1,120}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} \[(?P<module>[\w-]{1,56})"),
)
_KILLED = Form(
    "ut of memory: Kill", r"(?:ed)? process \d{1,10},?(?: UID \d{1,10},)? \((?P<name>[^)]{1,16})\)",
    before="(?:(?P<cgroup>Memory cgroup o)|O)",
)  # fmt: skip
_LIBRARY = (
    r"(?P<library>lib(?:nccl|cuda|cudart|nvidia-(?:cfg|ml|ptxjit|nvvm)|dcgm)[\w.-]{0,80}|nv(?:idia)?-[\w-]{1,40})\["
)
"""Of compute: programs that draw crash in libraries of their own."""
_CRASHED = (
    Form(
        "]: segfault at ", r"[0-9a-f]{1,16} ip [0-9a-f]{1,16} sp [0-9a-f]{1,16} error [0-9a-f]{1,8} in " + _LIBRARY,
        before=r"(?P<name>.{1,16})\[\d{1,10}", forgeable=True,
    ),
    Form(
        "traps: ", r"(?P<name>.{1,16})\[\d{1,10}\] (?:general protection(?: fault)?|trap [\w ]{1,30}) ip:[0-9a-f]{1,16}"
        r" sp:[0-9a-f]{1,16} error:[0-9a-f]{1,8} in " + _LIBRARY, forgeable=True,
    ),
)  # fmt: skip
_CLOCK = (
    Form("Marking TSC unstable due to ", r"(?P<why>(?!running on).{1,60})", before="(?:tsc: )?"),
    Form(
        ": Marking clocksource 'tsc' as unstable because ", r"(?P<why>[^:]{1,60})",
        before=r"clocksource: timekeeping watchdog(?: on CPU\d{1,5})?",
    ),
)  # fmt: skip
_PROGRESS = Form("nvidia-modeset: ERROR: GPU:", r"\d{1,2}: Error while waiting for GPU progress: ")
_BOUNCE = Form(
    ": swiotlb buffer is full (sz: ", r"\d{1,12} bytes\)", before=rf"[\w-]{{1,64}} (?P<bdf>{PATTERN})"
)
_SENDS_NOTHING = (
    Form("NETDEV WATCHDOG: ", r"(?P<interface>[\w.@-]{1,15}) \([\w-]{1,32}\): transmit queue \d{1,5} timed out"),
    Form(
        ": NETDEV WATCHDOG: CPU: ", r"\d{1,5}: transmit queue \d{1,5} timed out",
        before=rf"[\w-]{{1,64}} {PATTERN} (?P<interface>[\w.@-]{{1,15}})",
    ),
    Form(": transmit timeout: latency ", r"\d{1,9} msecs", before=r"(?P<interface>[\w.@-]{1,15})"),  # ipoib_main.c
)  # fmt: skip
_OF_INTERFACE = rf"[\w-]{{1,32}} {PATTERN} (?P<interface>[\w.@-]{{1,15}})"
_LINK_DOWN = (
    Form(": Link down", "$", before=_OF_INTERFACE),
    Form(": NIC Link is Down", "$", before=_OF_INTERFACE),
    Form(": Link is down", "$", before=_OF_INTERFACE),
)
"""mlx5 and mlx4 (en_main.c, en_netdev.c); Intel's and Broadcom's drivers; tg3."""
_IPMI = r"ipmi_(?:si|ssif)(?: [\w.:-]{1,40})?"
_NO_BMC = (
    Form(": There appears to be no BMC at this location", before=_IPMI),
    Form(": Interface detection failed", before=_IPMI),
    Form(": Unable to get the device id: ", r"-\d{1,3}$", before=_IPMI),
)
_KCS = Form(": KCS in invalid state ", r"\d{1,2}$", before=_IPMI)
_BMC_FOUND = (
    Form("Found new BMC (", before=rf"{_IPMI}: (?:IPMI message handler: )?"),
    Form("interfacing existing BMC (", before=rf"{_IPMI}: (?:IPMI message handler: )?"),
)
_NO_ECC = (
    Form("ECC is disabled on imc ", r"\d{1,3}(?: channel \d{1,2})?$", before="EDAC (?:skx|i10nm): "),
    Form("DRAM ECC disabled.", "$", before=r"EDAC amd64: (?:Node \d{1,3}: )?"),
)
_FULL = {
    Form("VFS: file-max limit ", r"\d{1,20} reached"): "open files",
    Form(": neighbor table overflow!", before=r"neighbour: \w{1,16}"): "ARP table",
    Form("table full", r"(?: in netns \d{1,10})?, dropping packet", before="(?:nf_conntrack: ){1,2}"):
        "connection tracking",
}
"""Limits of the whole host, by what says that they were reached."""
_INTERRUPT = Form(": nobody cared", r" \(try booting with", before=r"irq (?P<irq>\d{1,6})")
_NMI = Form("NMI: ", r"(?P<what>PCI system error \(SERR\)|IOCK error)")


def events(lines: Lines) -> list[HostEvent]:
    """All of these, in the order of the log."""
    found = [*_single(lines), *_silent_bmc(lines), *_held(lines), *_stuck(lines), *_oopses(lines), *_hung(lines)]
    return sorted(found, key=lambda event: event.seconds)


def _single(lines: Lines) -> Iterator[HostEvent]:
    for seconds, message in lines:
        if match := _PANIC.match(message):
            why = match["why"].strip()
            yield host_event("panic", why, seconds, message, "hardware" if _BY_HARDWARE.match(why) else "")
        elif match := _NMI.match(message):
            yield host_event("machine check", match["what"], seconds, message, corrected=False)
        elif first_match(_NO_ECC, message):
            yield host_event("no ECC", "", seconds, message)
        elif match := first_match(_CLOCK, message):
            yield host_event("clock", match["why"], seconds, message)
        elif _PROGRESS.match(message):
            yield host_event("stuck", "nvidia-modeset", seconds, message)
        elif match := first_match(_SENDS_NOTHING, message):
            yield host_event("sends nothing", match["interface"], seconds, message)
        elif match := first_match(_LINK_DOWN, message):
            yield host_event("link down", match["interface"], seconds, message)
        elif match := _BOUNCE.match(message):
            yield host_event("bounce buffers", match["bdf"], seconds, message)
        elif part := next((part for form, part in _FULL.items() if form.match(message)), ""):
            yield host_event("limit reached", part, seconds, message)
        elif match := _INTERRUPT.match(message):
            yield host_event("interrupt off", f"IRQ {match['irq']}", seconds, message)
        elif match := _KILLED.match(message):
            group = "cgroup" if match["cgroup"] else ""
            yield host_event("out of memory", match["name"], seconds, message, group)
        elif match := first_match(_CRASHED, message):
            yield host_event("crashed", match["name"], seconds, message, match["library"])
        elif match := first_match(_OVERHEATED, message):
            yield host_event("overheated", match.groupdict().get("zone", ""), seconds, message)
        elif match := _THROTTLED.match(message):
            count = int(match["count"])
            yield replace(host_event("throttled", f"CPU {int(match['cpu'])}", seconds, message), count=count)


def _silent_bmc(lines: Lines) -> list[HostEvent]:
    """Interfaces at which the kernel found no BMC, unless it found one at another, and answers that were garbled since
    it was found."""
    absent: list[HostEvent] = []
    garbled: list[HostEvent] = []
    found = False
    for seconds, message in lines:
        if first_match(_NO_BMC, message):
            absent.append(host_event("BMC", "", seconds, message))
        elif _KCS.match(message):
            garbled.append(host_event("BMC", "garbled", seconds, message))
        elif first_match(_BMC_FOUND, message):
            found, garbled = True, []
    return garbled if found else [*absent, *garbled]


def _held(lines: Lines) -> Iterator[HostEvent]:
    """GPUs that the driver was told to give up, and waits for who has them open; the last line of each."""
    held: dict[str, HostEvent] = {}
    for seconds, message in lines:
        if match := _HELD.match(message):
            held[match["device"]] = host_event("held", match["device"], seconds, message)
        elif match := _LET_GO.match(message):
            held.pop(match["device"], None)
    yield from held.values()


def _stuck(lines: Lines) -> Iterator[HostEvent]:
    """Tasks that wait or spin in the NVIDIA driver: functions of its modules are on their stack.

    The stack decides, as the name of a task can be chosen by any user.
    """
    heading: HostEvent | None = None
    for seconds, message in lines:
        if match := first_match(_STUCK, message):
            heading = host_event("stuck", match.groupdict().get("task", ""), seconds, message)
        elif heading is not None and seconds - heading.seconds <= FRAMES_S and (frame := _FRAME.match(message)):
            yield replace(heading, group=f"nvidia{frame['module']}")
            heading = None


def _oopses(lines: Lines) -> Iterator[HostEvent]:
    """Each once, with the module that the processor was in; a heading has several lines."""
    open_: HostEvent | None = None
    for seconds, message in lines:
        if open_ is not None and seconds - open_.seconds > FRAMES_S:
            yield open_
            open_ = None
        if open_ is None and first_match(_OOPS, message):
            open_ = host_event("oops", "", seconds, message)
        elif open_ is not None and not open_.group and (at := first_match(_AT, message)):
            open_ = host_event("oops", "", open_.seconds, open_.line, at["module"])
    if open_ is not None:
        yield open_


def _hung(lines: Lines) -> Iterator[HostEvent]:
    """Tasks and CPUs that hang outside the NVIDIA driver, with the module they are in: those in it are ``stuck``."""
    open_: HostEvent | None = None
    for seconds, message in lines:
        if open_ is not None and seconds - open_.seconds <= FRAMES_S and _FRAME.match(message):
            open_ = None
        elif open_ is not None and not open_.group and (at := first_match((*_AT, _OF_HCA), message)):
            open_ = replace(open_, group=at["module"])
        if (match := first_match(_STUCK, message) or first_match(_STALLED, message)) is not None:
            if open_ is not None:
                yield open_
            open_ = host_event("hung", match.groupdict().get("task", ""), seconds, message)
    if open_ is not None:
        yield open_
