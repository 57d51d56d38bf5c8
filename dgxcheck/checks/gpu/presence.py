"""Is every GPU there and usable?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.checks.driver.loaded import bound, gpu_nodes
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import missing_in, unjudged
from dgxcheck.checks.engine.per_gpu import per_gpu
from dgxcheck.checks.engine.visibility import in_container
from dgxcheck.facts.gpu import GpuModes
from dgxcheck.facts.ids import RECOVERY_ACTION
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.topology.model import Device

_COMPUTE_MODES = ("default", "exclusive thread", "prohibited", "exclusive process")
LOST = "gpu.lost"
RESET_REQUIRED = "NVML 16:"
_ACTIONS = {1: "reset", 2: "reboot", 3: "drain P2P", 4: "drain and reset", 5: "recover the IMEX domain", 6: "bus reset",
            7: "system reboot"}  # fmt: skip


def _lost(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    silent = [gap for gap in missing_in(box.snapshot) if gap.gap in (Gap.LOST, Gap.TIMEOUT)]
    for gpu in box.gpus:
        own = sorted((gap for gap in silent if _asks(gap, gpu)), key=lambda gap: gap.gap is Gap.TIMEOUT)
        if own and own[0].detail.startswith(RESET_REQUIRED):
            yield box.subject(gpu), skip("dependency-failed", "the GPU asks for a reset: see gpu.reset-required")
        elif own and own[0].gap is Gap.TIMEOUT:
            yield box.subject(gpu), unjudged(own[0])
        elif own:
            yield box.subject(gpu), _fail(f"the GPU stopped answering: {own[0]}", own)
        elif gpu.index is None:
            yield box.subject(gpu), unlisted(box, gpu)
        else:
            yield box.subject(gpu), Judgement(Status.PASS, "NVML lists it and it answers")
    lost = _lost_handles(box)
    if lost and not _unlisted_gpus(box):
        yield HOST, _fail(f"NVML has lost a GPU that is not on the PCI tree: {lost[0]}", lost)


def _asks(gap: Missing, gpu: Device) -> bool:
    """Was the question to NVML, and about this GPU alone? One about a pair may fail for the other's sake."""
    words = gap.where.split()
    return words[0].startswith("nvml") and words[1:2] == [gpu.bdf] and not any(":" in word for word in words[2:])


def _lost_handles(box: Box) -> list[Missing]:
    return [] if isinstance(box.nvml, Missing) else [gap for gap in box.nvml.lost if gap.gap is Gap.LOST]


def _unlisted_gpus(box: Box) -> list[Device]:
    """GPUs on the PCI tree that NVML does not list, without those that another driver holds."""
    return [gpu for gpu in box.topology.gpus if gpu.index is None and bound(gpu) in ("nvidia", None)]


def unlisted(box: Box, gpu: Device) -> Judgement:
    """A GPU on the PCI tree that NVML does not list: lost only if it is the driver's, and ours to open."""
    if isinstance(box.nvml, Missing):
        if box.nvml.gap is Gap.UNRECORDED:
            return unjudged(box.nvml)
        return skip("dependency-failed", "NVML lists no GPU at all")
    for gap in box.nvml.lost:
        if gap.gap is not Gap.LOST:
            return unjudged(gap)
    lost = _lost_handles(box)
    if lost and len(_unlisted_gpus(box)) <= len(lost) and bound(gpu) in ("nvidia", None):
        return _fail(f"NVML counts it, but gives no handle: {lost[0]}", lost)
    driver = bound(gpu)
    if isinstance(driver, Missing):
        return unjudged(driver)
    if driver != "nvidia":
        return skip("not-visible", f"bound to {driver or 'no driver'}, not to nvidia")
    if lost:
        return Judgement(Status.UNKNOWN, "NVML has lost a GPU; this may be the one, or it may be hidden from here")
    nodes = gpu_nodes(box)
    if isinstance(nodes, Missing):
        return unjudged(nodes)
    if in_container(box) or not all(nodes):
        return skip("not-visible", "not every device node can be opened from here: it may be hidden, not lost")
    message = "the driver holds it and its device node opens, but NVML does not list it"
    return Judgement(Status.FAIL, message, evidence=(Evidence("nvmlDeviceGetCount", len(box.nvml.gpus)),))


def _fail(message: str, gaps: Sequence[Missing]) -> Judgement:
    return Judgement(Status.FAIL, message, evidence=tuple(Evidence(gap.where, gap.reason) for gap in gaps[:10]))


def _compute_mode(_: Box, modes: GpuModes) -> Judgement | Missing:
    if isinstance(modes.compute_mode, Missing):
        return modes.compute_mode
    evidence = (answered(modes.compute_mode, "nvmlDeviceGetComputeMode", modes.bdf),)
    if modes.compute_mode not in range(len(_COMPUTE_MODES)):
        return Missing(Gap.GARBLED, evidence[0].where, f"no compute mode has the number {modes.compute_mode}")
    mode = _COMPUTE_MODES[modes.compute_mode]
    status = Status.WARN if mode == "prohibited" else Status.PASS
    return Judgement(status, f"compute mode is {mode}", mode, evidence=evidence)


def _mig(_: Box, modes: GpuModes) -> Judgement | Missing:
    if isinstance(modes.mig, Missing):
        return modes.mig
    if isinstance(modes.mig_pending, Missing):
        return modes.mig_pending
    now, later = (("off", "on")[each] for each in (modes.mig, modes.mig_pending))
    evidence = (answered([int(modes.mig), int(modes.mig_pending)], "nvmlDeviceGetMigMode", modes.bdf),)
    if now != later:
        message = f"MIG is {now} and will be {later} after the next reset"
        return Judgement(Status.WARN, message, now, later, evidence=evidence)
    return Judgement(Status.PASS, f"MIG is {now}", now, now, evidence=evidence)


def _reset(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    """The driver's recovery action, and GPUs that answer nothing any more before they are reset."""
    asks = [gap for gap in missing_in(box.snapshot) if gap.detail.startswith(RESET_REQUIRED)]
    by_action = {subject.bdf: (subject, said) for subject, said in per_gpu("gpu_modes", _recovery)(box)}
    for gpu in box.gpus:
        own = [gap for gap in asks if _asks(gap, gpu)]
        yield (box.subject(gpu), _fail(f"the GPU wants to be reset: {own[0]}", own)) if own else by_action[gpu.bdf]


def _recovery(_: Box, modes: GpuModes) -> Judgement | Missing:
    action = modes.recovery_action
    if isinstance(action, Missing):
        return action
    evidence = (answered(action, "nvmlDeviceGetFieldValues", modes.bdf, RECOVERY_ACTION),)
    if action == 0:
        return Judgement(Status.PASS, "the driver asks for no recovery", evidence=evidence)
    status = Status.WARN if _ACTIONS.get(action) == "drain P2P" else Status.FAIL
    return Judgement(status, f"the driver asks for: {_ACTIONS.get(action, f'action {action}')}", evidence=evidence)


CHECKS = (
    Check(
        id=LOST,
        rule="Fails where a GPU stopped answering, or where the driver holds it, its device node opens and NVML does"
        " not list it; a GPU that a container or another driver hides is not judged.",
        source="NVML_ERROR_GPU_IS_LOST; /sys/bus/pci/devices against nvmlDeviceGetCount",
        remedy="look for Xid 79 in the kernel log; power the machine off and on, then reseat the GPU if it comes back",
        judge=_lost,
    ),
    Check(
        id="gpu.compute-mode",
        rule="Warns on compute mode prohibited; exclusive modes are a site's choice.",
        source="nvmlComputeMode_t",
        remedy="nvidia-smi -i GPU -c 0",
        judge=per_gpu("gpu_modes", _compute_mode),
    ),
    Check(
        id="gpu.mig",
        rule="Warns where a change of the MIG mode waits for a reset; MIG itself is a site's choice.",
        source="nvmlDeviceGetMigMode: current and pending mode",
        remedy="stop the GPU's jobs and reset it, or set the old mode again: nvidia-smi -i GPU -mig 0 or 1",
        judge=per_gpu("gpu_modes", _mig),
    ),
    Check(
        id="gpu.reset-required",
        rule="Fails where the driver asks for a recovery, or answers that the GPU must be reset; warns where it only"
        " asks to drain peer-to-peer traffic.",
        source="NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, drivers from R570 on",
        remedy="stop the GPU's jobs and do what the driver asks for",
        judge=_reset,
    ),
)
