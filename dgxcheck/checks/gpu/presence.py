"""GPUs that are missing, lost or hang, and the recovery that the driver asks for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dgxcheck.checks.driver.loaded import bound, gpu_nodes
from dgxcheck.checks.engine.box import HOST, Box, Growth
from dgxcheck.checks.engine.check import Check, device_of, itself, own_remedy, per_gpu
from dgxcheck.checks.engine.finding import Evidence, Judged, Judgement, Status, Subject, answered, judged, of_gaps, skip
from dgxcheck.checks.engine.gaps import common_gpus, failed_pairs, is_about, unjudged
from dgxcheck.checks.engine.host_limits import driver_parameter, in_container
from dgxcheck.checks.gpu.not_started import not_opened
from dgxcheck.checks.placement.missing import baseboard, missing
from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.components.device_facts import is_only_named
from dgxcheck.components.locate import all_gpus, device_part, off_the_bus
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.ids import RECOVERY_ACTION, NvmlReturn
from dgxcheck.facts.kernel_log import ANNOUNCES_RECOVERY
from dgxcheck.facts.missing import Gap, Missing, need, or_gap
from dgxcheck.facts.nvml.gpu import GpuModes, Nvml
from dgxcheck.topology.model import Device
from dgxcheck.xid.relations import recovery_of

LOST = "gpu.lost"
ONLY_NAMED = Missing(Gap.UNRECORDED, "state of the GPU", "the text names it and says nothing of its state")
_RECOVERY = {
    1: ("a GPU reset", Fault.RESET_REQUIRED),
    2: ("a node reboot", Fault.REBOOT_REQUIRED),
    3: ("draining its peer-to-peer traffic", Fault.DRAIN_REQUIRED),
    4: ("draining and a GPU reset", Fault.DRAIN_AND_RESET),
    5: ("a recovery of the IMEX domain", Fault.IMEX_RECOVERY),
    6: ("a bus reset", Fault.RESET_REQUIRED),
    7: ("a system reboot", Fault.REBOOT_REQUIRED),
}
"""By nvmlDeviceGpuRecoveryAction_t: in words, and the fault."""


def _lost(box: Box) -> Judged:
    """Fails if a GPU stopped responding at either reading, if NVML reports it as lost in answer to queries about pairs,
    if it is bound to the NVIDIA driver, its device node can be opened and NVML does not list it, or if its config space
    reads all ones while NVML is not available or cannot open it, or if NVML says why it does not (power cables, an
    interrupt) or opens others and has an unknown error for it. Unknown if NVML counts it but cannot open it otherwise.
    Warns of one that NVreg_ExcludedGpus leaves out. A GPU that a container or another driver hides is not judged.

    Source: NVML_ERROR_GPU_IS_LOST; /sys/bus/pci/devices against nvmlDeviceGetCount; config of sysfs
    """
    unanswered = [gap for gap in box.gaps if gap.gap in (Gap.LOST, Gap.TIMEOUT)]
    gone = [gap for gap in unanswered if gap.gap is Gap.LOST and gap.code != NvmlReturn.RESET_REQUIRED]
    by_gpu, pairs = _blamed(box, unanswered, gone)
    for gpu in box.gpus:
        yield box.subject(gpu), _responds(box, gpu, by_gpu.get(gpu.bdf or "", []))
    for a, b, gap in pairs:
        yield box.pair(a, b), _gpu_lost(f"NVML has lost one of {a.name} and {b.name}: {gap}", [gap])
    lost, refused = _handles(box.nvml)
    if _unlisted_gpus(box):
        return
    if lost:
        yield HOST, _gpu_lost(f"NVML has lost a GPU that is not on PCI: {lost[0]}", lost)
    else:
        later = box.growth.new.gpu if isinstance(box.growth, Growth) else box.nvml
        yield from ((HOST, not_opened(gap)) for gap in (refused or _handles(later)[1])[:1])


def _blamed(
    box: Box, gaps: Sequence[Missing], of_pairs: Iterable[Missing]
) -> tuple[Mapping[str, Sequence[Missing]], list[tuple[Device, Device, Missing]]]:
    """Failed queries by the GPU that they blame, by themselves or as what failing pairs have in common; and the pairs
    of which either GPU may be to blame."""
    alone = {gpu.bdf or "": [gap for gap in gaps if is_about(gap, gpu.bdf)] for gpu in box.topology.gpus}
    pairs = failed_pairs(of_pairs, [bdf for bdf, own in alone.items() if own])
    common = common_gpus(pairs)
    by_bdf = {gpu.bdf: gpu for gpu in box.topology.gpus}
    left = [
        (by_bdf[a], by_bdf[b], gap) for (a, b), gap in pairs.items()
        if a in by_bdf and b in by_bdf and {by_bdf[a], by_bdf[b]} & {*box.gpus} and not {a, b} & {*common}
    ]  # fmt: skip
    return {bdf: own or common.get(bdf, []) for bdf, own in alone.items()}, left


def _responds(box: Box, gpu: Device, unanswered: Sequence[Missing]) -> Judgement:
    """``unanswered``: queries about this GPU that failed because it is lost or timed out."""
    if not unanswered:
        if isinstance(box.growth, Growth) and gpu.index is not None:
            later = box.growth.new.gpu_counters
            if not isinstance(later, Missing) and all(row.bdf != gpu.bdf for row in later):
                message = f"NVML no longer lists it at the second reading; {box.growth.how}"
                listed = (Evidence("nvmlDeviceGetHandleByIndex", "no longer listed"),)
                return judged(Fault.GPU_LOST, message, evidence=listed, fails=True)
        if gpu.index is None:
            return unlisted(box, gpu)
        if is_only_named(box.snapshot, gpu.bdf or ""):
            return unjudged(ONLY_NAMED)
        return Judgement(Status.PASS, "NVML lists it and it responds")
    evidence = sorted(unanswered, key=lambda gap: gap.gap is Gap.TIMEOUT)
    worst = evidence[0]
    if worst.code == NvmlReturn.RESET_REQUIRED:
        return skip("dependency-failed", "the GPU requires a reset: see gpu.reset-required")
    if worst.gap is Gap.TIMEOUT:
        return unjudged(worst)
    if _is_refused(box, gpu):
        return _SEE_THE_LOG
    if worst.code == NvmlReturn.UNKNOWN and _is_to_be_reset(box, gpu):
        return judged(Fault.DRIVER_UNRESPONSIVE, f"stopped responding; {worst}", evidence=of_gaps(evidence), fails=True)
    return _gpu_lost(f"stopped responding; {worst}", evidence)


_SEE_THE_LOG = skip("dependency-failed", "the driver says why it does not take the GPU: see kernel.gpu-start")


def _is_refused(box: Box, gpu: Device) -> bool:
    """Does the log say why the driver does not start it? NVML counts it all the same, and gets no answer."""
    return any(event.bdf == gpu.bdf and event.why and not event.past for event in box.log.not_started)


def _is_to_be_reset(box: Box, gpu: Device) -> bool:
    """Is a reset what the driver asked for last in its log, as after its firmware timed out? Then the GPU is on the bus
    and not lost."""
    asked = [xid.text for xid in box.log.xids
             if xid.bdf == gpu.bdf and xid.number == ANNOUNCES_RECOVERY and not xid.past]  # fmt: skip
    return bool(asked) and recovery_of(asked[-1]) == "gpu-reset"


def _handles(nvml: Nvml | Missing) -> tuple[list[Missing], list[Missing]]:
    """Of indexes that NVML counts: the GPUs that are lost, and why it opened no GPU otherwise, unless it was a driver
    that hangs."""
    gaps = () if isinstance(nvml, Missing) else nvml.lost
    elsewhere = (Gap.LOST, Gap.TIMEOUT, Gap.UNRECORDED, Gap.UNASKED)
    return [gap for gap in gaps if gap.gap is Gap.LOST], [gap for gap in gaps if gap.gap not in elsewhere]


def _unlisted_gpus(box: Box) -> list[Device]:
    """GPUs on PCI that NVML does not list, without those that another driver holds."""
    return [gpu for gpu in box.topology.gpus if gpu.index is None and _may_be_of_nvidia(gpu)]


def _may_be_of_nvidia(gpu: Device) -> bool:
    """Does no other driver hold it, as far as is recorded?"""
    driver = bound(gpu)
    return driver.gap is Gap.UNRECORDED if isinstance(driver, Missing) else driver in ("nvidia", None)


@or_gap
def _untried(box: Box) -> Missing | None:
    """The first device node of which nobody tried whether it opens, as in a bug report; why no node is known."""
    opens = [node.opens for node in need(need(box.snapshot.device_nodes).gpus)]
    return next((each for each in opens if isinstance(each, Missing) and each.gap is Gap.UNRECORDED), None)


def unlisted(box: Box, gpu: Device) -> Judgement:
    """A GPU on PCI that NVML does not list is lost only if the NVIDIA driver holds it and we may open it."""
    if isinstance(box.nvml, Missing):
        if (ones := off_the_bus(box).get(gpu.bdf or "")) is not None and _may_be_of_nvidia(gpu):
            return _gpu_lost("lost, its config space reads all ones", [ones])
        if box.nvml.gap is Gap.UNRECORDED:
            return unjudged(box.nvml)
        return skip("dependency-failed", "NVML lists no GPU")
    for gap in box.nvml.lost:
        if gap.gap in (Gap.TIMEOUT, Gap.UNRECORDED, Gap.UNASKED):
            return unjudged(gap)
    (lost, refused), nodes, driver = _handles(box.nvml), gpu_nodes(box), bound(gpu)
    all_open = not isinstance(nodes, Missing) and all(nodes)
    gone: dict[str, Missing] = {}
    if refused and not in_container(box):
        unlisted_gpus, ones_at = {each.bdf for each in _unlisted_gpus(box)}, off_the_bus(box)
        gone = {bdf: ones for bdf, ones in ones_at.items() if bdf in unlisted_gpus}
        if gpu.bdf in gone and len(gone) <= len(refused):
            return _gpu_lost(f"lost, its config space reads all ones; {refused[0]}", [refused[0], gone[gpu.bdf]])
        refused = refused[len(gone) :]
    if refused and _is_refused(box, gpu):
        return _SEE_THE_LOG
    if refused:
        # NVML counts GPUs that this user may not open, too (nvmlDeviceGetCount_v2)
        allowed = not in_container(box) and driver == "nvidia" and all_open
        is_this = len(_unlisted_gpus(box)) - len(gone) <= len(refused) and len({gap.code for gap in refused}) == 1
        says_why = refused[0].code != NvmlReturn.UNKNOWN or (allowed and bool(box.nvml.gpus))
        if not allowed and refused[0].gap is Gap.DENIED:
            return unjudged(refused[0])
        return not_opened(refused[0], is_this and says_why)
    if lost and len(_unlisted_gpus(box)) <= len(lost) and _may_be_of_nvidia(gpu):
        return _gpu_lost(f"lost, NVML cannot open it; {lost[0]}", lost)
    if isinstance(driver, Missing) and (driver.gap is Gap.UNRECORDED or in_container(box)):
        return unjudged(driver)
    if isinstance(driver, Missing):
        message = f"NVML does not list it; whether it is bound to nvidia is unknown: {driver.where}: {driver}"
        return Judgement(Status.UNKNOWN, message)
    if driver != "nvidia":
        return skip("not-visible", f"bound to {driver or 'no driver'}, not to nvidia")
    if (excluded := _excluded(box)) and len(_unlisted_gpus(box)) <= len(excluded):
        evidence = (Evidence("/proc/driver/nvidia/params", f"ExcludedGpus: {','.join(excluded)}"),)
        message = "the driver leaves it out, as its parameter ExcludedGpus says"
        return judged(Fault.GPU_EXCLUDED, message, evidence=evidence, warns=True)
    if lost:
        return Judgement(Status.UNKNOWN, "NVML has lost a GPU: it may be this one, or this one may be hidden")
    if (untried := _untried(box)) is not None:
        message = f"bound to nvidia, but NVML does not list it; whether this user may open it is unknown: {untried}"
        return skip("not-visible", message) if in_container(box) else Judgement(Status.UNKNOWN, message)
    if not all_open:  # a container hides a GPU by its node alone
        return skip("not-visible", "not every device node can be opened: the GPU may be hidden, not lost")
    message = "NVML does not list it; bound to nvidia, and its device node can be opened"
    evidence = (Evidence("nvmlDeviceGetCount", len(box.nvml.gpus)),)
    return judged(Fault.GPU_LOST, message, evidence=evidence, fails=True)


def _excluded(box: Box) -> list[str]:
    """UUIDs of the GPUs that the driver was loaded to leave out, and that NVML does not list."""
    named = driver_parameter(box, "ExcludedGpus")
    listed = {gpu.uuid for gpu in box.topology.gpus}
    return [uuid for uuid in map(str.strip, named.split(",")) if uuid and uuid not in listed]


def _gpu_lost(message: str, gaps: Sequence[Missing]) -> Judgement:
    return judged(Fault.GPU_LOST, message, evidence=of_gaps(gaps), fails=True)


def _blame_lost(box: Box, subject: Subject, judgement: Judgement) -> Iterator[Component]:
    """The GPU; the place where it is missing if it is no longer on PCI."""
    if subject.kind == "host":
        yield missing(box, "GPU")
    else:
        yield from itself(box, subject, judgement)
    if (peer := device_of(box, subject.peer)) is not None:
        yield device_part(box, peer)


def _reset(box: Box) -> Judged:
    """Fails if the driver requires a recovery action for the GPU or refuses queries until the GPU is reset, of the GPU
    alone or of all pairs that have it; warns if it only requires draining peer-to-peer traffic.

    Source: NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, drivers from R570 on; NVML_ERROR_RESET_REQUIRED

    The driver's recovery action; a GPU that requires a reset may answer no other query.
    """
    refusals = [gap for gap in box.gaps if gap.code == NvmlReturn.RESET_REQUIRED]
    by_gpu, pairs = _blamed(box, refusals, refusals)
    for subject, recovery in per_gpu("gpu_modes", _recovery)(box):
        own = by_gpu.get(subject.bdf or "", [])
        yield subject, _reset_required("the GPU requires a reset", own) if own else recovery
    for a, b, gap in pairs:
        yield box.pair(a, b), _reset_required(f"{a.name} or {b.name} requires a reset: {gap}", [gap])


def _reset_required(message: str, gaps: Sequence[Missing]) -> Judgement:
    return judged(Fault.RESET_REQUIRED, message, evidence=of_gaps(gaps), fails=True)


def _of_all(box: Box, at: Subject, judgement: Judgement) -> Component | None:
    if judgement.fault is Fault.IMEX_RECOVERY:
        return host_part("IMEX")
    return all_gpus(box, "") if judgement.fault is Fault.RESET_REQUIRED else None


def _recovery(_: Box, modes: GpuModes) -> Judgement:
    number = need(modes.recovery_action)
    evidence = (answered(number, "nvmlDeviceGetFieldValues", modes.bdf, RECOVERY_ACTION),)
    if number == 0:
        return Judgement(Status.PASS, "the driver requires no recovery action", evidence=evidence)
    action, fault = _RECOVERY.get(number, (f"recovery action {number}", Fault.RECOVERY_REQUIRED))
    remedy = own_remedy("gpu.reset-required", f"{number}" if number in _RECOVERY else "unknown")
    status = Status.WARN if fault is Fault.DRAIN_REQUIRED else Status.FAIL
    return Judgement(status, f"the driver requires {action}", evidence=evidence, fault=fault, remedy=remedy)


def _behind_all(box: Box, at: Subject, judgement: Judgement) -> Component | None:
    """The driver; where PCI does not show them either, what feeds them."""
    if judgement.fault is not Fault.GPU_LOST:
        return None
    gone = {gpu.bdf for gpu in box.topology.gpus} <= {*off_the_bus(box)}
    return (baseboard(box) or host_part("power supply")) if gone and box.topology.gpus else DRIVER


CHECKS = (
    Check(LOST, _lost, _blame_lost, _behind_all),
    Check("gpu.reset-required", _reset, shared=_of_all),
)  # fmt: skip
