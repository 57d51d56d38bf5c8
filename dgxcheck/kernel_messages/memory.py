"""Messages about errors of memory, CPUs and what else firmware reports: EDAC, machine checks, APEI and BERT.

Linux drivers/edac/edac_mc.c, arch/x86/kernel/cpu/mce, drivers/edac/mce_amd.c, drivers/acpi/apei, drivers/firmware/efi.
One error can be logged in several of these forms: EDAC's line names the DIMM and counts, so that what is logged within
a second of it is the same error. Each form begins with more bytes of its own than the name of a process has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from dgxcheck.facts.kernel_log import OF_IO, HostEvent, HostTrouble, PcieError, Severity, is_near
from dgxcheck.facts.record import Record, replace
from dgxcheck.kernel_messages.form import BDF, Forms, Lines, blocks, host_event
from dgxcheck.kernel_messages.gpu import xid
from dgxcheck.lazy_pattern import LazyPattern
from dgxcheck.xid.table import from_ampere

FORMS = Forms("memory")
SAME_S = 1.0
BOOT_S = 30.0
"""Machine checks logged by then without an exception were kept by the CPU or firmware from before the boot."""
STORM = 15
"""Corrected errors of one CPU within a second (CMCI_STORM_THRESHOLD, arch/x86/kernel/cpu/mce/intel.c)."""
_STORM_S = 60.0
"""Within this time other lines name what has the errors of a storm."""
_SEVERITY = LazyPattern(r"event severity: (?P<severity>[a-z]{1,20})")
_SECTION = LazyPattern(r"section_?[ ]?type: (?P<section>[^\n]{1,60})")
_AT = LazyPattern(rf"device_id: (?P<bdf>{BDF})$")
_DIMM = LazyPattern(r"DIMM location: (?!not present)(?P<dimm>[^\n]{1,80})|fru_text: (?P<fru>[^\n]{1,40})")
_MODULE = LazyPattern(r"node: ?(?P<node>\d{1,5}) card: ?(?P<card>\d{1,5}) module: ?(?P<module>\d{1,5})")
_UNCORRECTED, _DEFERRED = 1 << 61, 1 << 44
_MEMORY_MASK, _MEMORY = 0xEF80, 0x0080
"""Of MCACOD, compound error codes (Intel SDM, volume 3B, 17.9.2): memory controller errors."""
_IO_MASK, _IO = 0xE80C, 0x0808
"""The same: errors of the bus or interconnect, of I/O."""
_SEVERITIES: Mapping[str, Severity] = {"corrected": "corrected", "recoverable": "nonfatal", "fatal": "fatal"}


def errors(lines: Lines, of_driver: Lines = ()) -> list[HostEvent]:
    """Each error of memory, CPUs or what else firmware reports once, in the order of the log; of pages without those
    of GPUs, whose driver logged them."""
    edac = [event for seconds, message in lines if (event := _edac(seconds, message)) is not None]
    times = [event.seconds for event in edac]
    reported = (block.event for block in _blocks(lines) if block.event is not None)
    consumed = [seconds for seconds, message in lines if FORMS.match("consumed", message)]
    checks = (check for check in _machine_checks(lines) if check.trouble == "memory" or check.corrected
              or not is_near(check.seconds, consumed, SAME_S))  # fmt: skip
    others = [check for check in (*checks, *reported) if not is_near(check.seconds, times, SAME_S)]
    times += [event.seconds for event in others]
    storms = [_of_what(storm, [*edac, *others]) for storm in _storms(lines)]
    others += [*_of_iommu(lines), *storms]
    of_gpus = [*_gpu_memory(of_driver)]
    unnamed = [each for each in _unnamed(lines) if not is_near(each.seconds, times, SAME_S)
               and not (FORMS.match("page", each.line) and is_near(each.seconds, of_gpus, SAME_S))]  # fmt: skip
    return sorted([*edac, *others, *unnamed], key=lambda each: each.seconds)


def pcie_errors(lines: Lines) -> list[PcieError]:
    """Errors of PCIe that firmware handled and reported: ``{8}[Hardware Error]:   section_type: PCIe error``."""
    return [error for block in _blocks(lines) for error in block.pcie]


def _gpu_memory(lines: Lines) -> Iterator[float]:
    """When GPUs logged errors of their memory: where that of a Grace machine is a NUMA node, the driver has the kernel
    take the page out of use (NVIDIA open-gpu-kernel-modules, os-interface.c: os_offline_page_at_address)."""
    for seconds, message in lines:
        if (found := xid(message)) and (entry := from_ampere().get(found.number)) and entry.about == "memory":
            yield seconds


def _of_iommu(lines: Lines) -> Iterator[HostEvent]:
    for seconds, message in lines:
        if FORMS.match("IOMMU", message):
            yield host_event("machine check", "IOMMU", seconds, message, corrected=False)


def _of_what(storm: HostEvent, others: Sequence[HostEvent]) -> HostEvent:
    """The storm as corrected errors of what had some around that time; as of a CPU where nothing had."""
    near = [each for each in others if abs(each.seconds - storm.seconds) <= _STORM_S]
    of = min(near, key=lambda each: abs(each.seconds - storm.seconds), default=storm)
    return replace(of, seconds=storm.seconds, line=storm.line, count=STORM, corrected=True, past=False)


def _storms(lines: Lines) -> Iterator[HostEvent]:
    """So many corrected errors that the kernel asks for them instead of being interrupted."""
    for seconds, message in lines:
        if (match := FORMS.match("storm", message)) is not None:
            part = f"CPU {int(match['cpu'])} bank {int(match['bank'])}" if match["cpu"] else ""
            yield host_event("machine check", part, seconds, message, corrected=True)


def _edac(seconds: float, message: str) -> HostEvent | None:
    """``EDAC MC1: 262 CE memory read error on CPU_SrcID#0_Ha#0_Chan#1_DIMM#0 (channel:1 slot:0 page:0x2031c14 ..``"""
    if (match := FORMS.match("EDAC", message)) is None:
        return None
    group, corrected = f"mc{int(match['number'])}", match["kind"] == "C"
    event = host_event("memory", match["dimm"].strip(), seconds, message, group, corrected)
    return replace(event, count=max(int(match["count"]), 1))


def _machine_checks(lines: Lines) -> Iterator[HostEvent]:
    """Of Intel (``CPU 0: Machine Check: 0 Bank 7: cc00418000010091``) and AMD (``CPU:2 (17:31:0) MC17_STATUS[..]``)."""

    def step(event: HostEvent | None, seconds: float, message: str) -> HostEvent | None:
        if (match := FORMS.match("machine check", message)) is not None:
            return _machine_check(seconds, message, match)
        if event is not None and FORMS.match("AMD memory", message):
            return replace(event, trouble="memory")
        if event is not None and event.part != OF_IO and (processor := FORMS.match("processor", message)):
            return replace(event, group=f"socket {int(processor['socket'])}")
        return event

    return blocks(lines, SAME_S, step)


def _machine_check(seconds: float, message: str, match: re.Match[str]) -> HostEvent:
    status = int(match["status"], 16)
    mcg = match.groupdict().get("mcg")
    cpu = "" if match["cpu"] is None else f"CPU {int(match['cpu'])} "
    is_memory = mcg is not None and status & _MEMORY_MASK == _MEMORY
    past = seconds <= BOOT_S and mcg is not None and int(mcg, 16) == 0
    corrected = not status & (_UNCORRECTED | _DEFERRED)
    is_io = mcg is not None and not corrected and status & _IO_MASK == _IO
    trouble: HostTrouble = "memory" if is_memory else "machine check"
    part = OF_IO if is_io else f"{cpu}bank {int(match['bank'])}"
    return host_event(trouble, part, seconds, message, "", corrected, past)


class _Block(Record):
    """What one record of firmware says."""

    event: HostEvent | None
    pcie: tuple[PcieError, ...]


def _blocks(lines: Lines) -> Iterator[_Block]:
    """Of ``{35}[Hardware Error]:`` lines, and of those without a number, which firmware kept from before the boot."""
    blocks: dict[str, list[tuple[float, str, str]]] = {}
    unnumbered = 0
    for seconds, message in lines:
        if (match := FORMS.match("APEI", message)) is None or message.startswith("mce: "):
            continue
        if match["record"] is None and _SEVERITY.match(match["rest"]):
            unnumbered += 1
        name = match["record"] or f"before {unnumbered}"
        blocks.setdefault(name, []).append((seconds, message, match["rest"]))
    return (_block(block, name.startswith("before")) for name, block in blocks.items())


def _block(block: Sequence[tuple[float, str, str]], past: bool) -> _Block:
    """A section of memory or of PCIe says what it is; every other one is of the CPUs and the chips around them."""
    severity = dimm = module = ""
    sections, devices = [], []
    for _, message, rest in block:
        if match := _SEVERITY.match(rest):
            severity = match["severity"]
        elif match := _SECTION.match(rest):
            sections.append(match["section"])
        elif match := _DIMM.match(rest):
            dimm = match["dimm"] or dimm or match["fru"]
        elif match := _MODULE.match(rest):
            module = f"node {match['node']} card {match['card']} module {match['module']}"
        elif match := _AT.match(rest):
            devices.append((match["bdf"], message))
    if severity not in _SEVERITIES or not sections:
        return _Block(event=None, pcie=())
    seconds, line, _ = block[0]
    of_memory = any("memory error" in section for section in sections)
    trouble: HostTrouble = "memory" if of_memory else "machine check"
    part = (dimm.strip() or module) if of_memory or "processor" in " ".join(sections) else ""
    event = host_event(trouble, part, seconds, line, part, severity == "corrected", past)
    only_pcie = all("PCIe" in section for section in sections)
    return _Block(
        event=None if only_pcie and (devices or event.corrected) else event,
        pcie=tuple(
            PcieError(bdf=bdf, severity=_SEVERITIES[severity], seconds=seconds, line=message, past=past)
            for bdf, message in dict(devices).items()
        ),
    )


def _unnamed(lines: Lines) -> Iterator[HostEvent]:
    """Errors of which the log has no details: those for mcelog, and pages that were taken out of use."""
    last: HostEvent | None = None
    for seconds, message in lines:
        poisoned = FORMS.match("poisoned", message) is not None
        if not poisoned and not FORMS.match("logged", message):
            continue
        event = host_event("memory" if poisoned else "machine check", "", seconds, message, corrected=not poisoned)
        if last is None or seconds - last.seconds > SAME_S or last.trouble != event.trouble:
            yield event
        last = event
