"""The kernel or a program gave up, by the kernel log: panics, oopses, hung tasks, lockups, out of memory, crashes.

Linux kernel/panic.c, arch/x86/mm/fault.c, arch/arm64/kernel/traps.c, kernel/hung_task.c, kernel/watchdog.c,
kernel/rcu/tree_stall.h, mm/oom_kill.c, arch/x86/kernel/traps.c and nmi.c.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.facts.kernel_log import HostEvent, HostTrouble
from probes.kernel_log.parse_host import FRAMES_S, STUCK, is_frame

_PANIC = re.compile(r"Kernel panic - not syncing: (?P<why>.{0,200})", re.DOTALL)
_BY_HARDWARE = re.compile(r"(?:Fatal|Uncorrect\w{0,5}|Machine|Timeout).{0,40}(?:machine check|hardware error)|"
                          r"Timeout: Not all CPUs entered broadcast|NMI: Not continuing", re.IGNORECASE)  # fmt: skip
"""Reasons that arch/x86/kernel/cpu/mce/core.c, drivers/acpi/apei/ghes.c and nmi.c give."""
_OOPS = re.compile(
    r"BUG: unable to handle |BUG: kernel NULL pointer dereference|Unable to handle kernel |Internal error: "
    r"|general protection fault[,:] |kernel BUG at |Oops: "
)
_RIP = re.compile(r"(?:RIP: [0-9a-f]{4}:|pc : )[\w.]{1,120}\+0x[0-9a-f]{1,8}/0x[0-9a-f]{1,8} \[(?P<module>[\w-]{1,56})")
_STALLED = re.compile(r"(?:rcu: )?INFO: rcu\w{0,20} (?:self-)?detected (?:expedited )?stall")
_LOCKED_UP = re.compile(r"BUG: soft lockup - CPU#\d{1,5} stuck for \d{1,8}s! \[(?P<task>.{1,16}):\d{1,10}\]")
_KILLED = re.compile(
    r"(?P<group>Memory cgroup out of memory|Out of memory): Kill(?:ed)? process \d{1,10},?"
    r"(?: UID \d{1,10},)? \((?P<name>[^)]{1,16})\)"
)
_LIBRARY = r"lib(?:nccl|cuda|cudart|nvidia-(?:ml|ptxjit|nvvm)|dcgm)[\w.-]{0,80}|nv(?:idia)?-[\w-]{1,40}"
"""Of compute: programs that draw crash in libraries of their own."""
_CRASHED = re.compile(
    r"(?P<name>.{1,16})\[\d{1,10}\]: segfault at [0-9a-f]{1,16} ip [0-9a-f]{1,16} sp [0-9a-f]{1,16}"
    rf" error [0-9a-f]{{1,8}} in (?P<library>{_LIBRARY})\["
    r"|traps: (?P<trapped>.{1,16})\[\d{1,10}\] (?:general protection(?: fault)?|trap [\w ]{1,30}) ip:[0-9a-f]{1,16}"
    rf" sp:[0-9a-f]{{1,16}} error:[0-9a-f]{{1,8}} in (?P<of>{_LIBRARY})\["
)
_NMI = re.compile(r"NMI: (?P<what>PCI system error \(SERR\)|IOCK error)")
Lines = Sequence[tuple[float, str]]


def events(lines: Lines) -> list[HostEvent]:
    """All of these, in the order of the log."""
    found = [*_single(lines), *_oopses(lines), *_hung(lines)]
    return sorted(found, key=lambda each: each.seconds)


def _single(lines: Lines) -> Iterator[HostEvent]:
    for seconds, message in lines:
        if match := _PANIC.match(message):
            why = match["why"].strip()
            yield _event("panic", why, seconds, message, "hardware" if _BY_HARDWARE.match(why) else "")
        elif match := _NMI.match(message):
            yield _event("machine check", match["what"], seconds, message, corrected=False)
        elif match := _KILLED.match(message):
            yield _event("out of memory", match["name"], seconds, message, "cgroup" if "cgroup" in match[1] else "")
        elif match := _CRASHED.match(message):
            yield _event(
                "crashed", match["name"] or match["trapped"], seconds, message, match["library"] or match["of"]
            )


def _event(
    trouble: HostTrouble, part: str, seconds: float, line: str, group: str = "", corrected: bool | None = None
) -> HostEvent:
    return HostEvent(trouble=trouble, part=part, group=group, corrected=corrected, seconds=seconds, line=line)


def _oopses(lines: Lines) -> Iterator[HostEvent]:
    """Each once, with the module that the processor was in; a heading has several lines."""
    open_: HostEvent | None = None
    for seconds, message in lines:
        if open_ is not None and seconds - open_.seconds > FRAMES_S:
            yield open_
            open_ = None
        if open_ is None and _OOPS.match(message):
            open_ = _event("oops", "", seconds, message)
        elif open_ is not None and not open_.group and (at := _RIP.match(message)):
            open_ = _event("oops", "", open_.seconds, open_.line, at["module"])
    if open_ is not None:
        yield open_


def _hung(lines: Lines) -> Iterator[HostEvent]:
    """Tasks and CPUs that hang outside the NVIDIA driver: those in it are ``stuck`` (``parse_host``)."""
    open_: HostEvent | None = None
    for seconds, message in lines:
        if open_ is not None and seconds - open_.seconds <= FRAMES_S and is_frame(message):
            open_ = None
        task = STUCK.match(message) or _LOCKED_UP.match(message)
        if task is not None or _STALLED.match(message):
            if open_ is not None:
                yield open_
            names = task.groupdict() if task is not None else {}
            open_ = _event("hung", next(filter(None, names.values()), ""), seconds, message)
    if open_ is not None:
        yield open_
