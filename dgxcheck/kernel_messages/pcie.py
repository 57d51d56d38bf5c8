"""Messages about PCIe: errors (AER, DPC), slots that lose their device, BARs without a place, what an IOMMU refused.

Linux drivers/pci/pcie/aer.c, dpc.c, hotplug/pciehp_ctrl.c, setup-res.c, quirks.c;
drivers/iommu/amd/iommu.c, intel/dmar.c, arm/arm-smmu-v3; old and new spellings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from dgxcheck.facts.kernel_log import OF_GPU, HostEvent, IommuFault, IommuRefusal, PcieError, Severity
from dgxcheck.facts.record import replace
from dgxcheck.facts.typical import gathered
from dgxcheck.kernel_messages.form import Forms, Lines, host_event
from dgxcheck.lazy_pattern import LazyPattern

FORMS = Forms("pcie", "silent")
SAME_S = 1.0
"""Within this time the details of an error follow its announcement by a port."""
RECOVERY_S = 10.0
"""Within this time the drivers of the devices below a port are asked."""
_REASON, _BY_MESSAGE = 0x6, (0x2, 0x4)
"""Why a port contained an error, in its DPC Status register: of these two an error message of a device below it, whose
requester ID the Source ID register then holds; of all others that register means nothing (PCI Express 5.0, 7.9.15)."""
_NOBODY = ":00:00.0"
_GONE, _BACK = ("Link Down", "Card not present"), ("Link Up", "Card present")
_SIZE = LazyPattern(r"\[mem size 0x([0-9a-f]{1,16}) 64bit")
LARGE_BAR = 8 << 30


def error(message: str) -> tuple[str, Severity] | None:
    """``nvidia 0000:06:00.0: PCIe Bus Error: severity=Corrected, type=..``: bdf and severity."""
    match = FORMS.match("error", message)
    return None if match is None else (match["bdf"], _severity(match["uncorrected"]))


def announced(message: str) -> tuple[str, Severity] | None:
    """``pcieport 0000:00:02.0: AER: Corrected error received: 0000:06:00.0``, of old ``id=0010``: whose, and severity.

    Most are followed by a line that ``error`` knows; where the device cannot be asked any more there is none. An ID of
    0, that of the host bridge, is what root ports hold that were told none: then it is the port's own error. A port
    that contained an error (``pcieport 0000:80:02.0: DPC: containment event, ..``, drivers/pci/pcie/dpc.c) took the
    link below it down: its own error, or that of the device whose error message it received.
    """
    if (contained := FORMS.match("contained", message)) is not None:
        return _contained(contained)
    if (match := FORMS.match("announced", message)) is None:
        return None
    if (bdf := match["of"]) is None:
        bdf = _requester(int(match["id"], 16), match["bdf"].partition(":")[0])
    if bdf.endswith(_NOBODY):
        bdf = match["bdf"]
    return bdf, _severity(match["uncorrected"])


def _contained(match: re.Match[str]) -> tuple[str, Severity]:
    port = match["bdf"] or match["old"]
    sender = match["of"] or ""
    if match["id"] is not None and int(match["status"], 16) & _REASON in _BY_MESSAGE:
        sender = _requester(int(match["id"], 16), port.partition(":")[0])
    return sender if sender and not sender.endswith(_NOBODY) else port, "fatal"


def error_bit(message: str) -> tuple[str, str] | None:
    """``nvidia 0000:06:00.0:    [ 6] BadTLP                 (First)``: bdf and name of the bit."""
    match = FORMS.match("detail", message)
    return None if match is None else (match["bdf"], match["name"])


def given_up(message: str) -> str | None:
    """``nvidia 0000:06:00.0: AER: can't recover (no error_detected callback)``: the bdf.

    The kernel asks the driver of each device below the port of an error (``pcie_do_recovery``, drivers/pci/pcie/err.c).
    """
    return FORMS.bdf("given up", message)


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
            waiting[severity] = PcieError(bdf=bdf, severity=severity, seconds=seconds, line=message,
                                          received=bdf not in message.split(maxsplit=2)[1])
        elif (detailed := error(message)) is not None:
            bdf, severity = detailed
            if (before := waiting.pop(severity, None)) is not None and seconds - before.seconds > SAME_S:
                found.append(before)
                before = None
            last[bdf] = len(found)
            received = before is not None and before.bdf == bdf and before.received
            found.append(PcieError(bdf=bdf, severity=severity, seconds=seconds, line=message, received=received))
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
                     if (match := FORMS.match("slot", message)))  # fmt: skip
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
    slots = [*FORMS.matches("slot", lines)]
    up = {slot["port"]: number for number, slot in slots if slot["what"] == "Link Up"}
    cards = {slot["port"] for _, slot in slots}
    for number, (seconds, message) in enumerate(lines):
        if match := FORMS.match("untrained", message):
            yield host_event("untrained", match["port"], seconds, message)
        elif found := FORMS.found("untrained slot", message):
            port = found[0]["port"] or found[0]["old"]
            group = "no card" if found[1] == "power" and port not in cards else found[1]
            yield host_event("untrained", port, seconds, message, group, past=number < up.get(port, -1))


def unusable(lines: Lines, begun: Mapping[str, Sequence[tuple[int, float]]]) -> Iterator[HostEvent]:
    """Devices that do not respond (``vfio-pci 0000:41:00.0: not ready 65535ms after FLR; giving up``), and BARs without
    a place (``pci 0000:06:00.0: BAR 1: no space for [mem size 0x2000000000 64bit pref]``); ``past`` once the driver
    took over the GPU, of ``begun`` the seconds, or a further attempt found room.

    BARs of memory alone, and none of virtual functions: many a machine has no room for those, and needs none.
    """
    gpus = {*begun, *(FORMS.bdf("NVIDIA GPU", message) for _, message in lines)}
    given = {room: number for number, (_, message) in enumerate(lines) if (room := _bar("with BAR", message))}
    for number, (seconds, message) in enumerate(lines):
        if (place := _bar("without BAR", message)) is not None:
            device, bar = place
            past = given.get(place, -1) > number or _since(seconds, begun.get(device, ()))
            group = f"GPU {bar}" if device in gpus else f"large {bar}" if _is_large(message) else bar
            yield host_event("no BAR", device, seconds, message, group, past=past)
        elif (bdf := FORMS.bdf("silent", message)) is not None:
            past = _since(seconds, begun.get(bdf, ()))
            yield host_event("silent", bdf, seconds, message, "GPU" if bdf in gpus else "", past=past)


def _since(seconds: float, begun: Sequence[tuple[int, float]]) -> bool:
    return any(seconds <= begun_s for _, begun_s in begun)


def _is_large(message: str) -> bool:
    """Is the BAR without a place one of 8 GiB or more, as of a GPU or another accelerator, in 64-bit addresses?"""
    size = _SIZE.search(message)
    return size is not None and int(size[1], 16) >= LARGE_BAR


def _bar(name: str, message: str) -> tuple[str, str] | None:
    """Bus id and number of the BAR."""
    match = FORMS.match(name, message)
    return None if match is None else (match["bdf"], match["bar"])


def iommu_faults(lines: Lines) -> list[IommuFault]:
    """``nvidia 0000:07:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT ..]``: whose access or interrupt was refused, and
    which device did not confirm that it forgot an address.

    Kernels before 6.15 print an SMMU's event as numbers in the lines that follow its first.
    """
    found: list[IommuFault] = []
    for seconds, message in lines:
        goes_on = found and found[-1].what == "smmu" and seconds - found[-1].seconds <= SAME_S
        if refusal := FORMS.found("IOMMU", message):
            if goes_on and ": event: " in message:
                del found[-1]
            match, what = refusal
            found.append(IommuFault(bdf=_refused(match), what=cast(IommuRefusal, what), seconds=seconds, line=message))
        elif goes_on and (stream := FORMS.match("stream", message)):
            number = int(stream["sid"], 16)
            if number < 1 << 16:
                found[-1] = replace(found[-1], bdf=found[-1].bdf or _requester(number))
    return found


def _requester(number: int, domain: str = "0000") -> str:
    """The bus id of a requester ID: eight bits of bus, five of device, three of function."""
    return f"{domain}:{number >> 8:02x}:{number >> 3 & 31:02x}.{number & 7}"


def _refused(match: re.Match[str]) -> str:
    """The device; empty where the line names none."""
    parts = match.groupdict("")
    if at := parts.get("at"):
        at = at.replace("0x", "")
        return at if at.count(":") > 1 else f"0000:{at}"
    if requester := parts.get("sid"):
        return _requester(int(requester, 16))
    return parts.get("bdf", "")
