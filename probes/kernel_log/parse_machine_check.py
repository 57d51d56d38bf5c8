"""Errors of memory and CPUs in the kernel log: EDAC, machine checks and APEI.

Linux drivers/edac/edac_mc.c, arch/x86/kernel/cpu/mce, drivers/edac/mce_amd.c, drivers/acpi/apei, drivers/firmware/efi.
One error can be logged in several of these forms: EDAC's line names the DIMM and counts, so that what is logged within
a second of it is the same error. Each form begins with more bytes of its own than the name of a process has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from dgxcheck.facts.kernel_log import HostEvent, HostTrouble
from dgxcheck.facts.record import replace

SAME_S = 1.0
BOOT_S = 30.0
"""Machine checks logged by then without an exception were kept by the CPU or firmware from before the boot."""
_EDAC = re.compile(
    r"EDAC MC(?P<mc>\d{1,3}): (?P<count>\d{1,9}) (?P<kind>[CU])E (?:[A-Za-z][\w /-]{0,60} )??on"
    r" (?P<dimm>[^(]{1,80}?) \("
)
_RAW = re.compile(
    r"(?:mce: )?\[Hardware Error\]: CPU (?P<cpu>\d{1,5}): Machine Check(?: Exception| Event)?: (?P<mcg>[0-9a-f]{1,16})"
    r" Bank (?P<bank>\d{1,3}): (?P<status>[0-9a-f]{1,16})"
)
_AMD = re.compile(
    r"(?:mce: )?\[Hardware Error\]: (?:CPU:(?P<cpu>\d{1,5}) \([0-9a-f:]{1,20}\) )?MC(?P<bank>\d{1,3})_STATUS"
    r"\[[^\]]{0,80}\]: 0x(?P<status>[0-9a-f]{1,16})"
)
_AMD_MEMORY = re.compile(
    r"(?:mce: )?\[Hardware Error\]: (?:Unified Memory Controller|(?:Northbridge Error [^:]{0,20}: )?DRAM ECC error)"
)
_PROCESSOR = re.compile(
    r"(?:mce: )?\[Hardware Error\]: PROCESSOR [0-9a-f]{1,4}:[0-9a-f]{1,8} TIME \d{1,20} SOCKET (?P<socket>\d{1,3}) "
)
_LOGGED = re.compile(r"(?:mce: )?\[Hardware Error\]: Machine check events logged")
_POISONED = re.compile(
    r"mce: Uncorrected hardware memory error in user-access at [0-9a-f]{1,16}"
    r"|Memory failure: 0x[0-9a-f]{1,16}: (?:recovery action for|Sending SIGBUS|Killing) "
)
_APEI = re.compile(r"(?:\{(?P<number>\d{1,10})\})?\[Hardware Error\]: {1,8}(?P<rest>\S.*)", re.DOTALL)
_SEVERITY = re.compile(r"event severity: (?P<severity>[a-z]{1,20})")
_SECTION = re.compile(r"section_?[ ]?type: (?P<section>[^\n]{1,60})")
_DIMM = re.compile(r"DIMM location: (?!not present)(?P<dimm>[^\n]{1,80})|fru_text: (?P<fru>[^\n]{1,40})")
_MODULE = re.compile(r"node: ?(?P<node>\d{1,5}) card: ?(?P<card>\d{1,5}) module: ?(?P<module>\d{1,5})")
_UNCORRECTED, _DEFERRED = 1 << 61, 1 << 44
_MEMORY_MASK, _MEMORY = 0xEF80, 0x0080
"""Of MCACOD, compound error codes (Intel SDM, volume 3B, 17.9.2): memory controller errors."""
_MEMORY_SECTION, _CPU_SECTION = "memory error", "processor error"
Lines = Sequence[tuple[float, str]]


def errors(lines: Lines) -> list[HostEvent]:
    """Each error of memory or CPUs once, in the order of the log."""
    edac = [event for seconds, message in lines if (event := _edac(seconds, message)) is not None]
    known = [event.seconds for event in edac]
    others = [each for each in (*_machine_checks(lines), *_apei(lines)) if not _near(each.seconds, known)]
    known += [event.seconds for event in others]
    unnamed = [each for each in _unnamed(lines) if not _near(each.seconds, known)]
    return sorted([*edac, *others, *unnamed], key=lambda each: each.seconds)


def _near(seconds: float, known: Sequence[float]) -> bool:
    return any(abs(seconds - other) <= SAME_S for other in known)


def _edac(seconds: float, message: str) -> HostEvent | None:
    """``EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x2031c14 ..``"""
    match = _EDAC.match(message)
    if match is None:
        return None
    return HostEvent(
        trouble="memory", part=match["dimm"].strip(), group=f"mc{int(match['mc'])}", corrected=match["kind"] == "C",
        count=max(int(match["count"]), 1), seconds=seconds, line=message,
    )  # fmt: skip


def _machine_checks(lines: Lines) -> Iterator[HostEvent]:
    """Of Intel (``CPU 0: Machine Check: 0 Bank 7: cc00418000010091``) and AMD (``CPU:2 (17:31:0) MC17_STATUS[..]``)."""
    open_: HostEvent | None = None
    for seconds, message in lines:
        if open_ is not None and seconds - open_.seconds > SAME_S:
            yield open_
            open_ = None
        match = _RAW.match(message) or _AMD.match(message)
        if match is not None:
            if open_ is not None:
                yield open_
            open_ = _machine_check(seconds, message, match)
        elif open_ is not None and _AMD_MEMORY.match(message):
            open_ = replace(open_, trouble="memory")
        elif open_ is not None and (processor := _PROCESSOR.match(message)):
            open_ = replace(open_, group=f"socket {int(processor['socket'])}")
    if open_ is not None:
        yield open_


def _machine_check(seconds: float, message: str, match: re.Match[str]) -> HostEvent:
    status = int(match["status"], 16)
    mcg = match.groupdict().get("mcg")
    cpu = "" if match["cpu"] is None else f"CPU {int(match['cpu'])} "
    is_memory = mcg is not None and status & _MEMORY_MASK == _MEMORY
    return HostEvent(
        trouble="memory" if is_memory else "machine check", part=f"{cpu}bank {int(match['bank'])}", group="",
        corrected=not status & (_UNCORRECTED | _DEFERRED), seconds=seconds, line=message,
        past=seconds <= BOOT_S and mcg is not None and int(mcg, 16) == 0,
    )  # fmt: skip


def _apei(lines: Lines) -> Iterator[HostEvent]:
    """Blocks of ``{35}[Hardware Error]:``, and those without a number, which firmware kept from before the boot."""
    blocks: dict[str, list[tuple[float, str, str]]] = {}
    unnumbered = 0
    for seconds, message in lines:
        match = _APEI.match(message)
        if match is None:
            continue
        if match["number"] is None and _SEVERITY.match(match["rest"]):
            unnumbered += 1
        name = match["number"] or f"before {unnumbered}"
        blocks.setdefault(name, []).append((seconds, message, match["rest"]))
    for name, block in blocks.items():
        event = _block(block)
        if event is not None:
            yield replace(event, past=name.startswith("before"))


def _block(block: Sequence[tuple[float, str, str]]) -> HostEvent | None:
    severity = trouble = dimm = module = ""
    for _, _, rest in block:
        if match := _SEVERITY.match(rest):
            severity = match["severity"]
        elif match := _SECTION.match(rest):
            section = match["section"]
            trouble = (
                "memory" if _MEMORY_SECTION in section else "machine check" if _CPU_SECTION in section else trouble
            )
        elif match := _DIMM.match(rest):
            dimm = match["dimm"] or dimm or match["fru"]
        elif match := _MODULE.match(rest):
            module = f"node {match['node']} card {match['card']} module {match['module']}"
    kinds: dict[str, HostTrouble] = {"memory": "memory", "machine check": "machine check"}
    if trouble not in kinds or severity in ("", "info"):
        return None
    part = dimm.strip() or module
    seconds, line, _ = block[0]
    return HostEvent(
        trouble=kinds[trouble], part=part, group=part, corrected=severity == "corrected", seconds=seconds, line=line,
    )  # fmt: skip


def _unnamed(lines: Lines) -> Iterator[HostEvent]:
    """Errors of which the log has no details: those for mcelog, and pages that were taken out of use."""
    last: HostEvent | None = None
    for seconds, message in lines:
        poisoned = _POISONED.match(message) is not None
        if not poisoned and not _LOGGED.match(message):
            continue
        event = HostEvent(
            trouble="memory" if poisoned else "machine check", part="", group="", corrected=not poisoned,
            seconds=seconds, line=message,
        )  # fmt: skip
        if last is None or seconds - last.seconds > SAME_S or last.trouble != event.trouble:
            yield event
        last = event
