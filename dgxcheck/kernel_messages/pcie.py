"""Messages about PCIe: errors (AER, DPC), slots that lose their device, BARs without a place, what an IOMMU refused.

Linux drivers/pci/pcie/aer.c, dpc.c, hotplug/pciehp_ctrl.c, setup-res.c, quirks.c;
drivers/iommu/amd/iommu.c, intel/dmar.c, arm/arm-smmu-v3; old and new spellings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dgxcheck.facts.bdf import PATTERN, as_bdf, is_bdf
from dgxcheck.facts.kernel_log import OF_GPU, HostEvent, IommuFault, IommuRefusal, PcieError, Severity
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.kernel_messages.form import DEVICE, Form, Lines, first_match, host_event
from dgxcheck.lazy_pattern import LazyPattern

SAME_S = 1.0
"""Within this time the details of an error follow its announcement by a port."""
RECOVERY_S = 10.0
"""Within this time the drivers of the devices below a port are asked."""
"""Begins a line about a GPU, where the machine's devices are not known."""
_HOW_BAD = r"(?:Correct(?:ed|able)|Uncorrect(?:ed|able) \((?P<uncorrected>Non-Fatal|Fatal)\))"
_ERROR = Form("PCIe Bus Error: severity=", _HOW_BAD, before=rf"{DEVICE}(?:AER: )?")
_DETAIL = Form(
    "[", r" ?\d{1,2}\] (?P<name>[A-Za-z][A-Za-z ]{0,39}?) {0,64}(?:\(First\))?\s{0,64}$", before=rf"{DEVICE} {{0,15}}"
)
_GIVEN_UP = Form("AER: ", r"(?:[Cc]an't recover|[Dd]evice recovery failed)", before=DEVICE)
_CONTAINED = Form("pcieport ", rf"(?P<bdf>{PATTERN}): DPC: containment event, status:0x[0-9a-f]{{1,4}}\b")
_NOBODY = ":00:00.0"
_ANNOUNCED = Form(
    " received",
    rf"(?::| from) (?:id=(?P<id>[0-9a-f]{{4}})|(?P<of>{PATTERN}))",
    before=rf"{DEVICE}AER: (?:Multiple )?{_HOW_BAD} error(?: message)?",
)
_SLOT = (
    Form(": pciehp: Slot(", before=rf"pcieport (?P<port>{PATTERN})",
         after=r"(?P<slot>[\w-]{1,20})\): (?P<what>Link Down(?!/)|Card not present|Link Up|Card present"
         r"|Attention button pressed|Button pressed|Powering off due to button press)"),
    Form("pciehp ", rf"(?P<port>{PATTERN}):pcie\d{{1,4}}: [Ss]lot\((?P<slot>[\w-]{{1,20}})\): (?P<what>Link Down"
         "|Card not present|Link Up|Card present|Attention button pressed|Button pressed"
         "|Powering off due to button press)"),
)  # fmt: skip


def silent_forms(before: str) -> tuple[Form, ...]:
    """What the kernel says of a device whose configuration space reads as ones, now, before Linux 5.18 and 5.7, and a
    minute after a reset (drivers/pci/pci.c)."""
    return (
        Form(" change power state", before=f"{before}(?:Unable to|can't|Refused to)",
             after=r"(?:, currently in D3| from D3(?:cold|hot) to D0(?:, device| \(config space) inaccessible)"),
        Form("not ready ", r"\d{1,9}ms after [\w >-]{1,24}; giving up", before),
    )  # fmt: skip


_SILENT = (
    *silent_forms(rf"(?!nvidia |mlx5_core |pcieport ){DEVICE}"),
    Form("PCIe link lost", "(?:$|, device now detached$)", rf"ig[bc] (?P<bdf>{PATTERN})(?: [\w.-]{{1,15}})?: "),
    Form(": Adapter removed", "$", rf"ixgbe (?P<bdf>{PATTERN})"),
)
"""Of any other driver's device; that of vfio-pci can be of any kind. Ethernet drivers detach one whose registers read
as ones (igc_rd32, igb_rd32, ixgbe_remove_adapter)."""
_UNTRAINED = Form(": retraining failed", "$", before=rf"(?:pcieport|pci) (?P<port>{PATTERN})")
"""After ``broken device, retraining non-functional downstream link at 2.5GT/s`` (``pcie_failed_link_retrain``)."""
_OF_SLOT = rf"pcie(?:port (?P<port>{PATTERN}): (?:DPC: |pciehp: )?|hp (?P<old>{PATTERN}):pcie\d{{1,4}}: )"
_NO_LINK = (
    Form("Data Link Layer Link Active not set in ", r"\d{1,6} msec$", _OF_SLOT),
    Form("Failed to check link status", "$", _OF_SLOT),
    Form("lot(", r"[\w-]{1,20}\): (?:No link$|No device found$|Cannot train link: status )", f"{_OF_SLOT}[Ss]"),
)
"""Logged where a device is: in an occupied slot, or below a port that was reset (``pcie_wait_for_link_delay``,
``pciehp_check_link_status``)."""
_POWER_FAULT = (
    Form("lot(", r"[\w-]{1,20}\): Power fault$", f"{_OF_SLOT}[Ss]"), Form("Power fault on slot ", "", _OF_SLOT),
)
_GONE, _BACK = ("Link Down", "Card not present"), ("Link Up", "Card present")
_NO_BAR = (
    Form(": no space for [mem size ", before=rf"{DEVICE}BAR (?P<bar>[0-5])"),
    Form("]: can't assign; no space", before=rf"{DEVICE}BAR (?P<bar>[0-5]) \[mem size [^\]]{{1,60}}"),
    Form(": failed to assign [mem size ", before=rf"{DEVICE}BAR (?P<bar>[0-5])"),
    Form("]: failed to assign", before=rf"{DEVICE}BAR (?P<bar>[0-5]) \[mem size [^\]]{{1,60}}"),
)
_SIZE = LazyPattern(r"\[mem size 0x([0-9a-f]{1,16}) 64bit")
LARGE_BAR = 8 << 30
_FOUND = rf"pci (?P<bdf>{PATTERN}): "
_HAS_BAR = (
    Form(": assigned [mem 0x", before=rf"{_FOUND}BAR (?P<bar>[0-5])"),
    Form("]: assigned", before=rf"{_FOUND}BAR (?P<bar>[0-5]) \[mem 0x[^\]]{{1,60}}"),
)
_NVIDIA_GPU = Form("[10de:", r"[0-9a-f]{4}\] type 0\d class 0x03", before=_FOUND)
_SHORT = r"(?P<at>(?:[0-9a-f]{4}:)?(?:0x)?[0-9a-f]{2}:(?:0x)?[0-9a-f]{2}\.[0-7])"
_IVHD = r"(?:iommu ivhd\d{1,3}: )?"
_SMMU = r"arm-smmu-v3 [\w.:-]{1,60}: "
_IOMMU: tuple[tuple[Form, IommuRefusal], ...] = (
    (Form("AMD-Vi: Event logged [IO_PAGE_FAULT ", before=DEVICE), "memory"),
    (Form("AMD-Vi: Event logged [IO_PAGE_FAULT device=", rf"{_SHORT} "), "memory"),
    (Form("] Request device [", rf"{_SHORT}\] ", before=r"DMAR: ?\[DMA (?:Read|Write)[A-Z_ ]{0,20}"), "memory"),
    (Form("] Request device [", rf"{_SHORT}\] ", before=r"DMAR: ?\[INTR-REMAP"), "interrupt"),
    (Form("AMD-Vi: Event logged [IOTLB_INV_TIMEOUT device=", rf"{_SHORT} ", before=_IVHD), "unanswered"),
    (Form("Completion-Wait loop timed out", before=rf"AMD-Vi: (?:IOMMU {PATTERN}: )?"), "unanswered"),
    (Form("VT-d detected Invalidation Time-out Error: SID ", "(?P<sid>[0-9a-f]{1,4})$", before="DMAR: "), "unanswered"),
    (Form("CMDQ error (cons 0x", r"[0-9a-f]{8}\): ATC invalidate timeout", before=_SMMU), "unanswered"),
    (Form("CMD_SYNC timeout at 0x", r"[0-9a-f]{8} ", before=_SMMU), "unanswered"),
    (Form("event 0x", r"[0-9a-f]{2} received:", before=_SMMU), "smmu"),
    (Form("event: ", rf"[A-Z]_[A-Z_]{{1,30}} client: (?:(?P<bdf>{PATTERN})|\S)", before=_SMMU), "smmu"),
)
IOMMU_FORMS = tuple(form for form, _ in _IOMMU)
CONTEXT = (Form("pcieport", "[:( ]", context=True), Form("AER:", before=DEVICE, context=True))
"""Everything else that ports and error handling log."""
_STREAM = Form("0x", r"(?P<sid>[0-9a-f]{8}) ?000000(?:02|0[3-9a-f]|1[0-3])$", before=_SMMU)
"""The first words of an SMMU's event; the stream is the requester's bus, device and function."""


def error(message: str) -> tuple[str, Severity] | None:
    """``nvidia 0000:06:00.0: PCIe Bus Error: severity=Corrected, type=..``: bdf and severity."""
    match = _ERROR.match(message)
    return (match["bdf"], _severity(match["uncorrected"])) if match is not None and is_bdf(match["bdf"]) else None


def announced(message: str) -> tuple[str, Severity] | None:
    """``pcieport 0000:00:02.0: AER: Corrected error received: 0000:06:00.0``, of old ``id=0010``: whose, and severity.

    Most are followed by a line that ``error`` knows; where the device cannot be asked any more there is none. An ID of
    0, that of the host bridge, is what root ports hold that were told none: then it is the port's own error. A port
    that contained an error (``pcieport 0000:80:02.0: DPC: containment event, ..``, drivers/pci/pcie/dpc.c) took the
    link below it down.
    """
    if (contained := _CONTAINED.match(message)) is not None:
        return (contained["bdf"], "fatal") if is_bdf(contained["bdf"]) else None
    if (match := _ANNOUNCED.match(message)) is None:
        return None
    if (bdf := match["of"]) is None:
        bdf = _requester(int(match["id"], 16), match["bdf"].partition(":")[0])
    if bdf.endswith(_NOBODY):
        bdf = match["bdf"]
    return (bdf, _severity(match["uncorrected"])) if is_bdf(bdf) else None


def error_bit(message: str) -> tuple[str, str] | None:
    """``nvidia 0000:06:00.0:    [ 6] BadTLP                 (First)``: bdf and name of the bit."""
    match = _DETAIL.match(message)
    return (match["bdf"], match["name"]) if match is not None and is_bdf(match["bdf"]) else None


def given_up(message: str) -> str | None:
    """``nvidia 0000:06:00.0: AER: can't recover (no error_detected callback)``: the bdf.

    The kernel asks the driver of each device below the port of an error (``pcie_do_recovery``, drivers/pci/pcie/err.c).
    """
    match = _GIVEN_UP.match(message)
    return match["bdf"] if match is not None and is_bdf(match["bdf"]) else None


def _severity(uncorrected: str | None) -> Severity:
    return "corrected" if uncorrected is None else "fatal" if uncorrected == "Fatal" else "nonfatal"


def errors(lines: Lines) -> list[PcieError]:
    """Each error once: by its details, or by its announcement where no details follow."""
    found: list[PcieError] = []
    waiting: dict[Severity, PcieError] = {}
    last: dict[str, int] = {}
    for seconds, message in lines:
        if (announcement := announced(message)) is not None:
            bdf, severity = announcement
            if severity in waiting:
                found.append(waiting[severity])
            waiting[severity] = PcieError(bdf=bdf, severity=severity, seconds=seconds, line=message)
        elif (detailed := error(message)) is not None:
            bdf, severity = detailed
            if (before := waiting.pop(severity, None)) is not None and seconds - before.seconds > SAME_S:
                found.append(before)
            last[bdf] = len(found)
            found.append(PcieError(bdf=bdf, severity=severity, seconds=seconds, line=message))
        elif (bit := error_bit(message)) is not None and bit[0] in last:
            of = found[last[bit[0]]]
            if seconds - of.seconds <= SAME_S and bit[1] not in of.names:
                found[last[bit[0]]] = replace(of, names=(*of.names, bit[1]))
        elif (lost := given_up(message)) is not None and lost in last:
            found[last[lost]] = replace(found[last[lost]], unrecovered=True)
        elif lost is not None and (worst := next((each for each in waiting if each != "corrected"), None)) is not None:
            waiting[worst] = _unrecovered(waiting[worst], lost, seconds, message, True)
        elif lost is not None and found:
            near = {each.bdf.partition(".")[0] for each in found if seconds - each.seconds <= RECOVERY_S}
            found[-1] = _unrecovered(found[-1], lost, seconds, message, len(near) == 1)
    return [*found, *waiting.values()]


def _unrecovered(error: PcieError, lost: str, seconds: float, message: str, alone: bool) -> PcieError:
    """The kernel names the port above, whose error is that of the only device that had one."""
    if error.severity == "corrected" or seconds - error.seconds > RECOVERY_S:
        return error
    if error.bdf == lost or (alone and message.endswith("evice recovery failed")):
        return replace(error, unrecovered=True)
    more = (lost,) if message.startswith(OF_GPU) and lost not in error.other_gpus else ()
    return replace(error, other_gpus=(*error.other_gpus, *more))


def unplugged(lines: Lines) -> Iterator[HostEvent]:
    """Slots whose device went away on its own, ``past`` where one came back; not those that somebody switched off."""
    slots = gathered(((match["port"], match["slot"]), (seconds, message, match["what"])) for seconds, message in lines
                     if (match := first_match(_SLOT, message)) is not None and is_bdf(match["port"]))  # fmt: skip
    for (port, slot), messages in slots.items():
        last = [number for number, (_, _, what) in enumerate(messages) if what in _GONE]
        if not last:
            continue
        first = last[-1]
        while first and messages[first - 1][2] in _GONE:
            first -= 1
        if first and messages[first - 1][2] not in (*_GONE, *_BACK):
            continue
        seconds, line, _ = messages[first]
        back = any(what in _BACK for _, _, what in messages[last[-1] :])
        yield host_event("unplugged", port, seconds, line, slot, past=back)


def untrained(lines: Lines) -> Iterator[HostEvent]:
    """Ports whose link did not come up at 2.5 GT/s either, which slots that are empty can log too; of the group
    ``device`` those below which a device is, of ``power`` those whose slot lacks power (pciehp_ist), of ``no card``
    those of which nothing else is logged, as of empty slots of Intel's VMD at boot; ``past`` where the link of their
    slot came up since."""
    matches = ((number, first_match(_SLOT, message)) for number, (_, message) in enumerate(lines))
    slots = [(number, match) for number, match in matches if match is not None]
    up = {slot["port"]: number for number, slot in slots if slot["what"] == "Link Up"}
    cards = {slot["port"] for _, slot in slots}
    for number, (seconds, message) in enumerate(lines):
        if (match := _UNTRAINED.match(message)) is not None and is_bdf(match["port"]):
            yield host_event("untrained", match["port"], seconds, message)
        for forms, group in (_NO_LINK, "device"), (_POWER_FAULT, "power"):
            if (match := first_match(forms, message)) is not None and is_bdf(port := match["port"] or match["old"]):
                of = "no card" if group == "power" and port not in cards else group
                yield host_event("untrained", port, seconds, message, of, past=number < up.get(port, -1))


def silent(message: str) -> str | None:
    """``vfio-pci 0000:41:00.0: not ready 65535ms after FLR; giving up``: the bdf of a device that does not respond."""
    match = first_match(_SILENT, message)
    return match["bdf"] if match is not None and is_bdf(match["bdf"]) else None


def without_bar(message: str) -> tuple[str, str] | None:
    """``pci 0000:06:00.0: BAR 1: no space for [mem size 0x2000000000 64bit pref]``: the bdf and the BAR's number.

    BARs of memory alone, and none of virtual functions: many a machine has no room for those, and needs none.
    """
    return _bar(_NO_BAR, message)


def is_large(message: str) -> bool:
    """Is the BAR without a place one of 8 GiB or more, as of a GPU or another accelerator, in 64-bit addresses?"""
    size = _SIZE.search(message)
    return size is not None and int(size[1], 16) >= LARGE_BAR


def with_bar(message: str) -> tuple[str, str] | None:
    """``pci 0000:06:00.0: BAR 1 [mem 0x3800000000-0x3fffffffff 64bit pref]: assigned``, at a further attempt."""
    return _bar(_HAS_BAR, message)


def _bar(forms: tuple[Form, ...], message: str) -> tuple[str, str] | None:
    match = first_match(forms, message)
    return (match["bdf"], match["bar"]) if match is not None and is_bdf(match["bdf"]) else None


def nvidia_gpu(message: str) -> str | None:
    """``pci 0000:06:00.0: [10de:2204] type 00 class 0x030000``, as the kernel finds it: the bdf."""
    match = _NVIDIA_GPU.match(message)
    return match["bdf"] if match is not None else None


def iommu_faults(lines: Lines) -> list[IommuFault]:
    """``nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT ..]``: whose access or interrupt was refused, and
    which device did not confirm that it forgot an address.

    Kernels before 6.15 print an SMMU's event as numbers in the lines that follow its first.
    """
    found: list[IommuFault] = []
    for seconds, message in lines:
        for form, what in _IOMMU:
            if (match := form.match(message)) is not None and (bdf := _refused(match)) is not None:
                twice = found[-1:] and what == "smmu" and ": event: " in message and found[-1].what == "smmu"
                if twice and seconds - found[-1].seconds <= SAME_S:
                    del found[-1]
                found.append(IommuFault(bdf=bdf, what=what, seconds=seconds, line=message))
        stream = _STREAM.match(message)
        if stream is not None and found and found[-1].what == "smmu" and seconds - found[-1].seconds <= SAME_S:
            number = int(stream["sid"], 16)
            if number < 1 << 16:
                found[-1] = replace(found[-1], bdf=found[-1].bdf or _requester(number))
    return found


def _requester(number: int, domain: str = "0000") -> str:
    """The bus id of a requester ID: eight bits of bus, five of device, three of function."""
    return f"{domain}:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}"


def _refused(match: re.Match[str]) -> str | None:
    """The device; empty where the line names none, None where what it names is none."""
    parts = match.groupdict()
    if (at := parts.get("at")) is not None:
        at = at.replace("0x", "")
        return as_bdf(at if at.count(":") > 1 else f"0000:{at}")
    if (requester := parts.get("sid")) is not None:
        return _requester(int(requester, 16))
    bdf = parts.get("bdf")
    return "" if bdf is None else bdf if is_bdf(bdf) else None
