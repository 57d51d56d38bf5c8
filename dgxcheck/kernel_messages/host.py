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
from math import inf

from dgxcheck.facts.kernel_log import HostEvent
from dgxcheck.facts.record import replace
from dgxcheck.kernel_messages.form import Forms, Lines, blocks, host_event
from dgxcheck.lazy_pattern import LazyPattern

FORMS = Forms("host")
FRAMES_S = 1.0
"""The stack follows its heading within this time."""
_BY_HARDWARE = LazyPattern(
    r"(?:Fatal|Uncorrect\w{0,5}|Machine|Timeout).{0,40}(?:machine check|hardware error)|"
    r"Timeout: Not all CPUs entered broadcast|NMI(?: IOCK error)?: Not continuing",
    flags=re.IGNORECASE,
)
"""Reasons that arch/x86/kernel/cpu/mce/core.c, drivers/acpi/apei/ghes.c and nmi.c give."""


def events(lines: Lines) -> list[HostEvent]:
    """All of these, in the order of the log."""
    found = [*_single(lines), *_links(lines), *_silent_bmc(lines), *_held(lines), *_stuck(lines), *_oopses(lines),
             *_hung(lines)]  # fmt: skip
    return sorted(found, key=lambda event: event.seconds)


def _single(lines: Lines) -> Iterator[HostEvent]:
    for seconds, message in lines:
        if (event := FORMS.event(seconds, message)) is None:
            continue
        if event.trouble == "panic":
            why = event.part.strip()
            event = replace(event, part=why, group="hardware" if _BY_HARDWARE.match(why) else "")
        elif event.trouble == "machine check":
            event = replace(event, corrected=False)
        elif event.trouble == "interrupt off":
            event = replace(event, part=f"IRQ {event.part}")
        elif event.trouble == "out of memory":
            event = replace(event, group="cgroup" if event.group else "")
        elif event.trouble == "throttled":
            event = replace(event, part=f"CPU {int(event.part)}", count=int(event.group))
        yield event


def _links(lines: Lines) -> Iterator[HostEvent]:
    """Links of interfaces that went down, ``back`` where they came up since."""
    links = [*FORMS.matches("link", lines)]
    up = {link["part"]: number for number, link in links if not link["down"]}
    for number, link in links:
        if link["down"]:
            down = host_event("link down", link["part"], *lines[number])
            yield replace(down, back=number < up.get(link["part"], -1))


def _silent_bmc(lines: Lines) -> list[HostEvent]:
    """Interfaces at which the kernel found no BMC, unless it found one at another, and answers that were garbled since
    it was found."""
    absent: list[HostEvent] = []
    garbled: list[HostEvent] = []
    found = False
    for seconds, message in lines:
        if FORMS.match("no BMC", message):
            absent.append(host_event("BMC", "", seconds, message))
        elif FORMS.match("KCS", message):
            garbled.append(host_event("BMC", "garbled", seconds, message))
        elif FORMS.match("BMC found", message):
            found, garbled = True, []
    return garbled if found else [*absent, *garbled]


def _held(lines: Lines) -> Iterator[HostEvent]:
    """GPUs that the driver was told to give up, and waits for who has them open; the last line of each."""
    held: dict[str, HostEvent] = {}
    for seconds, message in lines:
        if match := FORMS.match("held", message):
            held[match["device"]] = host_event("held", match["device"], seconds, message)
        elif match := FORMS.match("let go", message):
            held.pop(match["device"], None)
    yield from held.values()


def _stuck(lines: Lines) -> Iterator[HostEvent]:
    """Tasks that wait or spin in the NVIDIA driver: functions of its modules are on their stack.

    The stack decides, as the name of a task can be chosen by any user.
    """
    heading: HostEvent | None = None
    for seconds, message in lines:
        if match := FORMS.match("stuck", message):
            heading = host_event("stuck", match.groupdict().get("task", ""), seconds, message)
        elif heading is not None and seconds - heading.seconds <= FRAMES_S and (frame := FORMS.match("frame", message)):
            yield replace(heading, group=f"nvidia{frame['module']}")
            heading = None


def _oopses(lines: Lines) -> Iterator[HostEvent]:
    """Each once, with the module that the processor was in; a heading has several lines."""

    def step(event: HostEvent | None, seconds: float, message: str) -> HostEvent | None:
        if event is None:
            return host_event("oops", "", seconds, message) if FORMS.match("oops", message) else None
        at = None if event.group else FORMS.match("address", message)
        return event if at is None else replace(event, group=at["module"])

    return blocks(lines, FRAMES_S, step)


def _hung(lines: Lines) -> Iterator[HostEvent]:
    """Tasks and CPUs that hang outside the NVIDIA driver, with the module they are in: those in it are ``stuck``."""

    def step(event: HostEvent | None, seconds: float, message: str) -> HostEvent | None:
        if match := FORMS.match("stuck", message) or FORMS.match("stalled", message):
            return host_event("hung", match.groupdict().get("task", ""), seconds, message)
        if event is not None and seconds - event.seconds <= FRAMES_S and FORMS.match("frame", message):
            return None
        at = None if event is None or event.group else FORMS.match("module", message)
        return event if event is None or at is None else replace(event, group=at["module"])

    return blocks(lines, inf, step)
