"""GPUs that fell off the bus, and those that the driver could not start or does not take."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from dgxcheck.checks.driver.loaded import bound
from dgxcheck.checks.engine.box import HOST, Box, guest, unlisted_gpu
from dgxcheck.checks.engine.check import Check, component_of, remedy_of
from dgxcheck.checks.engine.expected import is_for_display, is_older
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, judged, skip
from dgxcheck.checks.engine.gaps import is_about
from dgxcheck.checks.gpu.not_started import NotStartedReason, legacy_release, not_started
from dgxcheck.checks.kernel_log.device_log import (
    boots_since,
    earlier_xids,
    events_of,
    gpu_itself,
    happened,
    lines,
    of_earlier_boots,
    per_device,
    reach,
    reaches_boot,
)
from dgxcheck.checks.kernel_log.pcie import links_lost_above
from dgxcheck.checks.placement.missing import missing, place_of
from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.facts.bdf import is_unplaced, nameless
from dgxcheck.facts.faults import GPU_DEAD, MODULES_REFUSED, Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.ids import NVIDIA, OF_THE_KERNEL
from dgxcheck.facts.kernel_log import (
    OFF_BUS,
    EarlierXid,
    HostEvent,
    KernelLog,
    ModuleTrouble,
    NotStarted,
    OffBus,
)
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import replace
from dgxcheck.profiles.library import board_id
from dgxcheck.topology.model import Device

_OF_RELEASE = ("not-open", "unsupported")
_OF_A_MODEL = frozenset({"supported", "needs-open", "not-open", "unsupported", "unattached", "unsupported-call"})
_MODULES: Mapping[ModuleTrouble, tuple[FaultKind, str]] = {
    "signature": (Fault.MODULE_UNSIGNED, "its signature was refused (Secure Boot, kernel lockdown)"),
    "kernel": (Fault.MODULE_NOT_BUILT, "it was built for another kernel"),
    "symbols": (Fault.MODULE_REFUSED, "symbols that it needs are missing"),
    "proprietary": (Fault.MODULE_REFUSED, "the kernel gives it no symbols of a proprietary module"),
}
_ADD_ONS = ("nvidia_fs", "gdrdrv")
"""Of GPUDirect Storage and gdrcopy: built beside the driver, which runs without them."""


def earlier_falls(log: KernelLog, bdf: str = "") -> list[EarlierXid]:
    """Falls in earlier boots that the log itself holds."""
    return [xid for xid in earlier_xids(log, bdf) if xid.number == OFF_BUS]


def _off_bus(box: Box, log: KernelLog, bdf: str, gpu: Device | None) -> Judgement | None:
    """Fails if the driver logged, since it was last loaded, that a GPU has fallen off the bus, as Xid 79 or without an
    Xid; warns if it did so in earlier boots that the log holds, unless in one alone, after which four or more were
    without it.

    Source: Xid 79; https://github.com/NVIDIA/NVSentinel/issues/155 for those without an Xid
    """
    function, earlier = box.topology.functions.get(bdf), earlier_falls(log, bdf)
    if gpu is None and function is not None and function.vendor != NVIDIA:
        return None
    silent = [event for event in events_of(log, "silent") if event.part == bdf and (gpu is not None or event.group)]
    all_times = [*(event for event in log.off_bus if event.bdf == bdf), *silent]
    now = [event for event in all_times if not event.past]
    falls = {xid.boot for xid in earlier}
    if not now and earlier:
        since, once = 0 if all_times else boots_since(falls), len(falls) == 1 and not all_times
        later = f", not in the {since} boots since" if since else ", not since" if once else ""
        later = ", and in this one before the driver was last loaded" if all_times else later
        message = f"fell off the bus in {counted(len(falls), 'earlier boot')} of this log{later}{reach(log)}"
        evidence = of_earlier_boots(log, earlier)
        if once and since:
            return Judgement(Status.PASS, message, evidence=evidence)
        fault = Fault.GPU_LOST_BEFORE if once or since else Fault.GPU_LOST
        return Judgement(Status.WARN, message, len(falls), 0, "boots", evidence, fault=fault)
    if not now:
        before = f"fell off the bus before the driver was last loaded{reach(log)}"
        return Judgement(Status.PASS, before) if all_times else None
    how = "Xid 79" if any(isinstance(event, OffBus) and event.xid for event in now) else "no Xid"
    when = "" if isinstance(log.begins, Missing) else f" {now[0].seconds:.0f} s after boot"
    message = f"fell off the bus{when} ({how}){reach(log)}"
    events = happened(now, "device", OFF_BUS)
    return Judgement(Status.FAIL, message, evidence=lines(log, now), fault=Fault.GPU_LOST, events=events)


def _fell(log: KernelLog) -> list[str]:
    silent = (event.part for event in events_of(log, "silent") if event.group)
    return [*(event.bdf for event in log.off_bus), *silent, *(xid.bdf for xid in earlier_falls(log))]


def _only_unlisted(box: Box) -> Device | None:
    """The one GPU that NVML does not list: lines without a bus id are about it. None where there are more or none."""
    unlisted = [gpu for gpu in box.topology.gpus if gpu.index is None]
    return unlisted[0] if len(unlisted) == 1 else None


def _blame_off_bus(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    """The GPU, of lines that name none the one that NVML lost; a link above it, which it shares, that failed at that
    time; also the place of one that is missing, where PCI does not list it any more."""
    lost = not isinstance(box.nvml, Missing) and box.nvml.lost
    one = _only_unlisted(box) if is_unplaced(at.bdf) and lost else None
    yield from gpu_itself(box, at if one is None else box.subject(one), judgement)
    yield from links_lost_above(box, at, judgement)
    yield from place_of(box, at.bdf)


def _silent(box: Box, gpu: Device) -> bool:
    """Does NVML count it and get no answer of it? It opens GPUs by index whether they started or not."""
    return any(gap.gap is Gap.LOST and is_about(gap, gpu.bdf) for gap in box.gaps)


def _start(box: Box, log: KernelLog, bdf: str, gpu: Device | None) -> Judgement | None:
    own = gpu is not None and gpu == _only_unlisted(box)
    of_one = [event for event in log.not_started if event.why != "none"]
    all_times = [event for event in of_one if event.bdf == bdf or (own and event.bdf is None)]
    now = [event for event in all_times if not event.past]
    no_bar = [event for event in events_of(log, "no BAR") if event.part == bdf and not event.past]
    listed = (now or no_bar) and gpu is not None and gpu.index is not None and not _silent(box, gpu)
    if not now and (listed or not no_bar or (gpu is None and not _has_large(box, no_bar))):
        before = f"the driver could not start it before it was last loaded{reach(log)}"
        return Judgement(Status.PASS, before) if all_times else None
    lost = any(event.bdf == bdf and not event.past for event in log.off_bus)
    without_why = no_bar and all(event.why == "" for event in now)
    reason = not_started("lost") if lost else not_started("bars") if without_why else _reason(now)
    if reason.why == "claimed" and gpu is not None and (listed or bound(gpu) not in (None, "nvidia")):
        return None
    if reason.why in _OF_RELEASE and is_for_display(box, bdf) and is_older(box, bdf):
        return skip("not-supported", f"the driver does not take it{reason.text}, as an old GPU for a display may be")
    if _OF_A_MODEL & {event.why for event in now} and gpu is not None and _runs_others(box, gpu):
        reason = not_started("alone")
    if listed:
        message = f"the driver could not start it at first{reason.text}; NVML lists it now{reach(log)}"
        found, remedy = lines(log, now), remedy_of("kernel.gpu-start", "late")
        return judged(Fault.GPU_STARTED_LATE, message, evidence=found, warns=True, remedy=remedy)
    no_room = "the kernel found no room for a BAR of it"
    what = no_room if without_why and not lost else f"the driver could not start it{reason.text}"
    found = lines(log, [*no_bar, *now] if what == no_room else now)
    return judged(reason.fault, f"{what}{reach(log)}", evidence=found, fails=True, remedy=reason.remedy)


def _has_large(box: Box, no_bar: Sequence[HostEvent]) -> bool:
    """Is a device that PCI does not list as a GPU one by what the log says, or alone knows?"""
    return any(event.group[:3] == "GPU" or (not box.topology.functions and event.group[:5] == "large")
               for event in no_bar)  # fmt: skip


def _reason(events: Sequence[NotStarted]) -> NotStartedReason:
    """The most particular one that these say."""
    return not_started(*{event.why for event in events})


def _runs_others(box: Box, gpu: Device) -> bool:
    """Does NVML list another GPU with the same PCI ids? (https://github.com/NVIDIA/aicr/issues/1858)"""
    return any(other.index is not None and board_id(other) == board_id(gpu) != "" for other in box.topology.gpus)


def _starts(box: Box) -> Judged:
    """Fails if the driver logged, since it was last loaded, that it could not start a GPU (RmInitAdapter failed, probe
    failed) or does not take it: power cables not connected, no address of a BAR, no interrupt, a GPU that this release
    or these kernel modules do not support (but for an older VGA controller of a model of its own, as for a display),
    missing firmware, another driver that holds it; or if the kernel refused to load the driver's module, as by its
    signature or for another kernel. Warns if NVML lists that GPU now, or if the line does not name the GPU; a line that
    does not, and gives no reason, fails where NVML and PCI list no GPU, the log reaches back to boot, and no later line
    is of a GPU that runs. If it found no GPU at all, warns, and fails where PCI has none now.

    Source: NVRM lines of NVIDIA's open-gpu-kernel-modules: kernel-open/nvidia/nv.c, nv-pci.c,
    src/nvidia/arch/nvalloc/unix/src/osapi.c, osinit.c; Linux kernel/module
    """
    yield from _PER_GPU(box)
    log = box.log
    yield from _modules(box, log)
    now = [event for event in log.not_started if event.bdf is None and not event.past]
    absent = [event for event in now if event.why == "none"]
    now = [event for event in now if event.why != "none"]
    if absent and not now and guest(box) is None:
        found = f"the driver found no GPU when it was to be loaded{reach(log)}", 0, None, "GPUs", lines(log, absent)
        none = not box.topology.gpus and not isinstance(box.snapshot.pci, Missing)
        yield replace(HOST, part="GPUs"), judged(Fault.GPU_MISSING, *found, warns=True, fails=none)
    if now and all(event.why == "claimed" for event in now):
        others = {str(bound(gpu)) for gpu in box.topology.gpus} - {"nvidia", "None", *OF_THE_KERNEL}
        now = [] if others else now  # a GPU that was given away on purpose (vfio-pci) is not missed
    lost = [event.seconds for event in log.off_bus if not event.past]  # one that is gone is tried again
    now = [event for event in now if event.why or not any(at <= event.seconds for at in lost)]
    if now and _only_unlisted(box) is None:
        reason = _reason(now)
        what = f"{reason.text}{legacy_release(now)}"
        text = f"the driver could not start a GPU{what}; its log line does not name which{reach(log)}"
        unseen = isinstance(box.nvml, Missing) and not box.topology.gpus and reaches_boot(log)
        fails = not reason.why and unseen and not _runs_later(log, now[-1].seconds)
        yield HOST, judged(reason.fault, text, evidence=lines(log, now), warns=True, fails=fails, remedy=reason.remedy)


def _runs_later(log: KernelLog, seconds: float) -> bool:
    """Is a later line of a GPU that runs? It may be this one, started in the end."""
    times = [log.in_use_s, *(xid.seconds for xid in log.xids if xid.number != OFF_BUS)]
    return max(times) > seconds


def _modules(box: Box, log: KernelLog) -> Judged:
    """A refused signature names no module: it counts where the driver is not loaded."""
    loaded = not isinstance(box.snapshot.gpu, Missing)
    now = [refused for refused in log.modules if not refused.past and (refused.module or not loaded)]
    for name in dict.fromkeys(refused.module for refused in now):
        own = sorted((refused for refused in now if refused.module == name), key=lambda each: each.why == "proprietary")
        peer = name in _PEER_MEMORY
        reason, text = _OTHER_STACK if peer and own[-1].why == "kernel" else _MODULES[own[-1].why]
        message = f"the kernel did not load module {name or 'of the driver'}: {text}{reach(log)}"
        fails = bool(name) and not loaded and not peer and name not in _ADD_ONS
        fault = Fault.PEER_MEMORY if peer else Fault.ADD_ON_MODULE if name in _ADD_ONS else reason
        yield replace(HOST, part=name or "kernel modules"), judged(
            fault, message, len(own), 0, "", lines(log, own), warns=True, fails=fails,
            remedy=_remedy(fault, own[-1].why, reason),
        )  # fmt: skip


def _remedy(fault: FaultKind, why: ModuleTrouble, reason: FaultKind) -> str:
    of_kernel = remedy_of("kernel.gpu-start", "GPL symbols") if why == "proprietary" else reason.remedy
    return fault.remedy if fault is Fault.ADD_ON_MODULE else of_kernel


_PEER_MEMORY = ("nvidia_peermem", "nv_peer_mem")
_OTHER_STACK = Fault.PEER_MEMORY, "it was built against another RDMA stack (ib_core)"
_PER_GPU = per_device(
    _start,
    lambda log: [*(event.bdf for event in log.not_started if event.bdf is not None),
                 *(event.part for event in events_of(log, "no BAR"))],
    "no failed start logged",
)  # fmt: skip


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    if judgement.fault in MODULES_REFUSED:
        yield DRIVER
    elif judgement.fault in (Fault.PEER_MEMORY, Fault.ADD_ON_MODULE):
        yield host_part(judgement.fault.about[1])
    elif judgement.fault is Fault.GPU_MISSING:
        yield missing(box, "GPU")
    elif at.kind == "host":
        refused = judgement.fault is Fault.GPU_REFUSED
        if refused and isinstance(box.nvml, Missing):
            yield DRIVER
        dead = judgement.fault in GPU_DEAD and not refused
        yield component_of(box, unlisted_gpu(nameless(0))) if dead else host_part("start of a GPU")
    elif judgement.fault is Fault.BAR1_SMALL:
        groups = [event.group for event in events_of(box.log, "no BAR") if event.part == at.bdf]
        if at.kind == "pci" and groups and all(group[:5] == "large" for group in groups):
            yield host_part("large BARs")
        else:
            yield from (replace(gpu, part="BAR1") for gpu in gpu_itself(box, at, judgement))
    else:
        if judgement.fault in (Fault.GPU_REFUSED, Fault.START_MEMORY):
            yield DRIVER if judgement.fault is Fault.GPU_REFUSED else host_part("free memory")
        yield from gpu_itself(box, at, judgement)


def _shared(box: Box, at: Subject, judgement: Judgement) -> Component | None:
    """The driver, which starts no GPU at all; not where it says why of each, nor where its codes differ."""
    if judgement.fault is Fault.BAR1_SMALL:
        return host_part("large BARs")
    codes = {event.code for event in box.log.not_started}
    return DRIVER if judgement.fault is Fault.GPU_NOT_STARTED and len(codes - {""}) <= 1 else None


CHECKS = (
    Check("kernel.off-bus", per_device(_off_bus, _fell, "did not fall off the bus"), _blame_off_bus),
    Check("kernel.gpu-start", _starts, _blames, _shared),
)  # fmt: skip
