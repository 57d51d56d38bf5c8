"""PCIe errors (AER), slots that lost their device, and what an IOMMU refused, by the kernel log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from dgxcheck.checks.engine.box import HOST, Box, pci_subject
from dgxcheck.checks.engine.check import Check, component_of, device_of, host, itself, own_link, remedy_of
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, skip
from dgxcheck.checks.host.disks import located
from dgxcheck.checks.kernel_log.device_log import (
    events_of,
    grouped,
    happened,
    lines,
    most_in_a_day,
    nothing_logged,
    per_device,
    reach,
    subject_at,
)
from dgxcheck.checks.placement.missing import missing, place_of
from dgxcheck.components.component import Component
from dgxcheck.components.containment import OF_SLOT
from dgxcheck.components.locate import links_at, lost_nvswitches
from dgxcheck.facts.bdf import gpu_at
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import OF_GPU, HostEvent, IommuFault, KernelLog, PcieError, is_near
from dgxcheck.facts.missing import need, rows
from dgxcheck.facts.record import replace
from dgxcheck.topology.model import Device

WINDOW_S = 10.0
"""Within this time of each other a GPU falls off the bus and its slot reports that its link is down."""
_SEVERITIES = {"fatal": "fatal", "nonfatal": "non-fatal", "corrected": "corrected"}
_UNPOWERED = "is down: its slot has a power fault"
_UNTRAINED = {
    "": "did not train, not even at 2.5 GT/s", "device": "did not come up", "power": _UNPOWERED, "no card": _UNPOWERED,
}  # fmt: skip
_CLIENT = " client: "
_INTEGRATED = "00:"
"""The first bus, whose devices are the chipset's."""


def _aer(box: Box, log: KernelLog, bdf: str, _: Device | None) -> Judgement | None:
    """Fails on a fatal PCIe error in the kernel log; warns on a non-fatal one, and on more than {kernel.corrected-pcie}
    from one device within a day.

    Source: Linux Documentation/PCI/pcieaer-howto.rst
    """
    errors = [error for error in log.pcie if error.bdf == bdf]
    if not errors:
        return None
    by_severity = {word: [error for error in errors if error.severity == each] for each, word in _SEVERITIES.items()}
    fatal, nonfatal, corrected = by_severity.values()
    limit = box.settings.limit("kernel.corrected-pcie")
    daily = most_in_a_day([(error.seconds, 1) for error in corrected])
    worst = fatal or nonfatal
    now = not all(error.past for error in worst)
    status = Status.FAIL if fatal and now else Status.WARN if worst or daily > limit else Status.PASS
    names = Counter(name for error in worst or corrected for name in error.names)
    bits = f" ({', '.join(f'{name} {times}' for name, times in names.most_common(3))})" if names else ""
    counts = {word: sum(1 + error.more for error in those) for word, those in by_severity.items() if those}
    totals = ", ".join(f"{count} {word}" for word, count in counts.items())
    most = "at least" if any(error.more for error in corrected) else "up to"
    rate = f", {most} {daily} a day (limit {limit:g})" if corrected and not worst else ""
    other = [subject_at(box, gpu).name for gpu in dict.fromkeys(gpu for error in worst for gpu in error.other_gpus)]
    lost = [*(["the device"] if any(error.unrecovered for error in worst) and not other else ()), *other]
    stuck = f"; the kernel could not recover {', '.join(lost)}" if lost else ""
    before = "" if not worst or now else " before this boot"
    message = f"PCIe errors logged{before}: {totals}{bits}{rate}{stuck}{reach(log)}"
    measured, expected, unit = (len(worst), 0, "errors") if worst else (daily, limit, "corrected errors")
    evidence, fault = lines(log, worst or corrected), Fault.AER_LOGGED if worst else Fault.AER_CORRECTABLE
    if status is Status.PASS:
        return Judgement(status, message, measured, expected, unit, evidence)
    events = () if worst and all(_lost_its_link(box, each) for each in worst) else happened(worst or corrected, "pcie")
    remedy = remedy_of("kernel.aer", "unrecovered").format(bdf) if lost and not other and status is Status.FAIL else ""
    return Judgement(status, message, measured, expected, unit, evidence, fault=fault, events=events, remedy=remedy)


def _lost_its_link(box: Box, error: PcieError) -> bool:
    """Did the link below a port with several devices fail? None of them does that to a link which they share.

    Of the fatal error that a bridge itself reports to the port above it the kernel reads no bits: the link between them
    may not work (aer_get_device_error_info). What a device below the bridge reports has the ID of that device.
    """
    own = {"SDES", "DLP"}.issuperset(error.names or ("",)) or (error.received and not error.names)
    return error.severity == "fatal" and own and len(list(box.topology.below(error.bdf))) > 1


def links_lost_above(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """Links that a device which is lost shares with others, and that failed at that time."""
    times = [each.seconds for each in judgement.events]
    for error in box.log.pcie:
        near = is_near(error.seconds, times, WINDOW_S)
        if near and _lost_its_link(box, error) and at.bdf in (each.bdf for each in box.topology.below(error.bdf)):
            yield from links_at(box, error.bdf)


def blame_pcie(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The PCIe link above a GPU, or above an HCA and then the HCA; the links at both sides of a bridge.

    Of a port whose links are not known the one GPU that was lost.
    """
    device = device_of(box, at)
    if device is None:
        lost = {gpu for error in box.log.pcie if error.bdf == at.bdf for gpu in error.other_gpus}
        if len(lost) == 1 and not any(links_at(box, at.bdf or "")):
            yield component_of(box, subject_at(box, *lost))
            return
        yield from _blame_slot(box, at, judgement)
        return
    yield from own_link(box, at, judgement)
    if device.kind != "gpu":
        yield from itself(box, at, judgement)


def blame_fatal(box: Box, moments: Collection[float], judgement: Judgement) -> Iterator[Component]:
    """What the fatal PCIe errors that were logged at one of these times can come from."""
    for error in box.log.pcie:
        if error.severity == "fatal" and is_near(error.seconds, moments, WINDOW_S):
            yield from blame_pcie(box, subject_at(box, error.bdf), judgement)


def _slots(box: Box) -> Judged:
    """Warns if a PCIe slot lost its device while the system was running, and it did not come back, if a device other
    than a GPU or HCA does not respond on PCIe, or if the link to a device did not come up: that below an occupied slot
    or a port that was reset, and at the lowest speed that to a GPU that fell off the bus, or of an empty slot while a
    GPU or HCA is missing. A slot that somebody switched off by its button is not judged.

    Source: Linux drivers/pci/hotplug/pciehp_ctrl.c, pciehp_hpc.c; drivers/pci/pci.c; drivers/pci/quirks.c,
    pcie_failed_link_retrain
    """
    log = need(box.snapshot.kernel_log)
    gone = {event.part: event for event in events_of(log, "unplugged") if not event.past}
    found = {port: (event, Fault.UNPLUGGED, f"slot {event.group} below this port lost its device while the system was"
                    " running") for port, event in sorted(gone.items())}  # fmt: skip
    for event in events_of(log, "untrained"):
        if (event.part not in gone or event.group == "power") and not event.past and _leads_to_a_device(box, event):
            found[event.part] = event, Fault.LINK_UNTRAINED, f"the link below this port {_UNTRAINED[event.group]}"
    found |= {event.part: (event, Fault.UNPLUGGED, "does not respond on PCIe") for event in _silent(box, log)}
    for bdf, (event, fault, message) in found.items():
        remedy = remedy_of("kernel.hot-plug", "silent").format(bdf) if event.trouble == "silent" else ""
        facts, events = lines(log, [event]), happened([event], "pcie")
        text = f"{message}{reach(log)}"
        yield pci_subject(bdf), Judgement(Status.WARN, text, evidence=facts, fault=fault, events=events, remedy=remedy)
    if not found:
        yield HOST, Judgement(Status.PASS, f"no slot lost its device{reach(log)}")


def _silent(box: Box, log: KernelLog) -> Iterator[HostEvent]:
    """Of devices that are neither GPU nor HCA; other functions of a GPU that is lost are lost with it."""
    boards = {event.bdf.partition(".")[0] for event in log.off_bus}
    for event in events_of(log, "silent"):
        if not (event.past or event.group or box.topology.device(event.part) or event.part.partition(".")[0] in boards):
            yield event


def _leads_to_a_device(box: Box, event: HostEvent) -> bool:
    """Is a device below a port whose link did not come up: one that the log takes for granted, a GPU that fell off the
    bus, or nothing while a GPU or HCA is missing?

    Empty slots of a machine do not train, and what answers below a port says that its link has trained since.
    """
    port = event.part
    if any(port in rows(function.path)[:-1] for function in box.topology.functions.values()):
        lost = {event.bdf for event in box.log.off_bus}
        return any(device.bdf in lost for device in box.topology.below(port))
    if event.group in ("device", "power"):
        return True
    placed = missing(box, "GPU").bdf, missing(box, "HCA").bdf
    return port in box.topology.functions and placed != (None, None)


def _blame_slot(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The device that does not respond; an NVSwitch that fell off the bus; the link below the port; where nothing is
    below it any more, the GPU that fell off the bus at that time, or the place of a GPU or HCA that is missing."""
    if any(event.part == at.bdf for event in _silent(box, box.log)):
        yield Component(kind="slot", name=at.name, bdf=at.bdf, part=OF_SLOT)
        return
    for switch in lost_nvswitches(box):
        function = box.topology.functions.get(switch.bdf or "")
        if function is not None and at.bdf in rows(function.path)[-2:]:
            yield switch
    yield from tuple(links_at(box, at.bdf or "")) or itself(box, at, judgement)
    if any(at.bdf in rows(function.path)[:-1] for function in box.topology.functions.values()):
        return
    for gpu in box.log.off_bus:
        if is_near(gpu.seconds, (event.seconds for event in judgement.events), WINDOW_S):
            placed = box.topology.device(gpu.bdf)
            yield Component(kind="gpu", name=gpu_at(gpu.bdf) if placed is None else placed.name, bdf=gpu.bdf)
            yield from place_of(box, gpu.bdf)
    yield from (place for place in (missing(box, "GPU"), missing(box, "HCA")) if place.bdf is not None)


def _refused(box: Box) -> Judged:
    """Warns if an IOMMU refused memory accesses or interrupts of a GPU, HCA or NVMe disk with errors: it translates
    the traffic between them, a program uses memory that was unmapped, or a device interrupts as no driver told it to;
    and if one did not answer the IOMMU, as one that hangs.

    Source: Linux drivers/iommu: AMD-Vi IO_PAGE_FAULT and IOTLB_INV_TIMEOUT, DMAR DMA and INTR-REMAP faults and
    invalidation time-outs, events, ATC and CMD_SYNC time-outs of arm-smmu-v3; NVIDIA GPUDirect RDMA documentation,
    IOMMU
    """
    log = need(box.snapshot.kernel_log)
    named = [event.seconds for event in log.iommu if event.what == "unanswered" and event.bdf]
    placed = [_placed(box, event) for event in log.iommu if event.what != "unanswered" or event.bdf
              or not is_near(event.seconds, named, WINDOW_S)]  # fmt: skip
    unseen = not box.topology.functions
    found = grouped((event.bdf if at is None else at.bdf or "", event) for at, event in placed
                    if at is not None or not event.bdf or event.line.startswith(OF_GPU)
                    or _is_sick_disk(log, event.bdf)
                    or (unseen and not event.bdf.partition(":")[2].startswith(_INTEGRATED)))  # fmt: skip
    for bdf, own in found.items():
        message, fault, remedy = _meaning(own)
        facts = (len(own), 0, "accesses", lines(log, own))
        events = happened(own, "pcie") if fault is Fault.IOMMU_UNANSWERED else ()
        yield box.subject_at(bdf) if bdf else HOST, Judgement(
            Status.WARN, f"{message}{reach(log)}", *facts, fault=fault, remedy=remedy, events=events
        )
    if not found and log.iommu:
        accesses, whose = counted(len(log.iommu), "access", "accesses"), log.iommu[-1].bdf
        message = f"the IOMMU refused {accesses}, the last of {whose}, no known GPU or HCA{reach(log)}"
        yield HOST, skip("no-history", message, *lines(log, log.iommu))
    elif not found:
        yield HOST, nothing_logged(log, "no access that an IOMMU refused")


def _meaning(events: Sequence[IommuFault]) -> tuple[str, FaultKind, str]:
    """What an IOMMU logged of one device: message, fault and remedy."""
    whats = {event.what for event in events}
    if whats == {"unanswered"}:
        message = f"did not answer the IOMMU {counted(len(events), 'time')}"
        if any(event.bdf for event in events):
            return message, Fault.IOMMU_UNANSWERED, ""
        remedy = remedy_of("kernel.iommu-fault", "nameless")
        return f"a device that the kernel does not name {message}", Fault.IOMMU_UNANSWERED, remedy
    accesses = f"{counted(len(events), 'access', 'accesses')} to memory"
    refused = counted(len(events), "interrupt") if whats == {"interrupt"} else accesses
    if "memory" in whats:
        return f"the IOMMU refused {refused}", Fault.IOMMU, ""
    return f"the IOMMU refused {refused}", Fault.IOMMU_BLOCKED, remedy_of("kernel.iommu-fault", "blocked")


def _blame_iommu(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The setting; of a device that does not answer, it or its link."""
    refused = judgement.fault is not Fault.IOMMU_UNANSWERED
    yield from host("IOMMU setting")(box, at, judgement) if refused else blame_pcie(box, at, judgement)


def _placed(box: Box, fault: IommuFault) -> tuple[Device | None, IommuFault]:
    """The device with its fault: an SMMU's event that names no client has bus, device and function, and no domain."""
    if fault.what != "smmu" or _CLIENT in fault.line:
        return box.topology.device(fault.bdf), fault
    alike = [each for each in box.topology.devices if f"0000:{(each.bdf or '').partition(':')[2]}" == fault.bdf]
    return (alike[0], fault) if len(alike) == 1 else (None, replace(fault, bdf="") if alike else fault)


def _is_sick_disk(log: KernelLog, bdf: str) -> bool:
    """Is it an NVMe disk with errors? Some are refused when they discard
    (https://forum.level1techs.com/t/148354)."""
    return bdf in {located(log, event.part) for event in events_of(log, "disk")} - {""}


CHECKS = (
    Check("kernel.aer", per_device(_aer, lambda log: [error.bdf for error in log.pcie], "no PCIe errors logged"),
        blame_pcie),
    Check("kernel.hot-plug", _slots, _blame_slot),
    Check("kernel.iommu-fault", _refused, _blame_iommu),
)  # fmt: skip
