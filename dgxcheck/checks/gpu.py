"""Is every GPU there and usable?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.check import Box, Check, per_gpu
from dgxcheck.checks.driver import bound, in_container
from dgxcheck.checks.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.gaps import missing_in, unjudged
from dgxcheck.facts.device_nodes import DeviceNodes
from dgxcheck.facts.gpu_modes import GpuModes
from dgxcheck.facts.ids import RECOVERY_ACTION
from dgxcheck.reading import Gap, Missing
from dgxcheck.topology.model import Device

_PROHIBITED = 2
_ACTIONS = {1: "reset", 2: "reboot", 3: "drain P2P", 4: "drain and reset", 5: "recover the IMEX domain", 6: "bus reset",
            7: "system reboot"}  # fmt: skip


def _lost(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    gone = [gap for gap in missing_in(box.snapshot) if gap.gap is Gap.LOST]
    for gpu in box.gpus:
        own = [gap for gap in gone if gpu.bdf is not None and gpu.bdf in gap.where]
        if own:
            evidence = tuple(Evidence(gap.where, gap.reason) for gap in own[:10])
            yield box.subject(gpu), Judgement(Status.FAIL, f"the GPU stopped answering: {own[0]}", evidence=evidence)
        elif gpu.index is not None:
            yield box.subject(gpu), Judgement(Status.PASS, "NVML lists it and it answers")
        else:
            yield box.subject(gpu), _unlisted(box, gpu, [gap for gap in gone if "GetHandle" in gap.where])


def _unlisted(box: Box, gpu: Device, no_handle: list[Missing]) -> Judgement:
    """A GPU on the PCI tree that NVML does not list: lost only if it is the driver's, and ours to open."""
    if isinstance(box.nvml, Missing):
        if box.nvml.gap is Gap.UNRECORDED:
            return unjudged(box.nvml)
        return skip("dependency-failed", "NVML lists no GPU at all")
    driver = bound(gpu)
    if isinstance(driver, Missing):
        return unjudged(driver)
    if driver != "nvidia":
        return skip("not-visible", f"bound to {driver or 'no driver'}, not to nvidia")
    if no_handle:
        evidence = tuple(Evidence(gap.where, gap.reason) for gap in no_handle)
        return Judgement(Status.FAIL, f"NVML counts it, but gives no handle: {no_handle[0]}", evidence=evidence)
    nodes = box.snapshot.device_nodes
    gpus = nodes.gpus if isinstance(nodes, DeviceNodes) else nodes
    if isinstance(gpus, Missing):
        return unjudged(gpus)
    if in_container(box) or not all(node.opens is True for node in gpus):
        return skip("not-visible", "not every device node can be opened from here: it may be hidden, not lost")
    message = "the driver holds it and its device node opens, but NVML does not list it"
    return Judgement(Status.FAIL, message, evidence=(Evidence("nvmlDeviceGetCount", len(box.nvml.gpus)),))


def _compute_mode(modes: GpuModes) -> Judgement | Missing:
    if isinstance(modes.compute_mode, Missing):
        return modes.compute_mode
    evidence = (answered(modes.compute_mode, "nvmlDeviceGetComputeMode", modes.bdf),)
    if modes.compute_mode == _PROHIBITED:
        return Judgement(Status.WARN, "compute mode is prohibited: no program may use it", evidence=evidence)
    return Judgement(Status.PASS, "programs may use it", evidence=evidence)


def _recovery(modes: GpuModes) -> Judgement | Missing:
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
        id="gpu.lost",
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
        id="gpu.reset-required",
        rule="Fails where the driver asks for a recovery; warns where it only asks to drain peer-to-peer traffic.",
        source="NVML_FI_DEV_GET_GPU_RECOVERY_ACTION, drivers from R570 on",
        remedy="stop the GPU's jobs and do what the driver asks for",
        judge=per_gpu("gpu_modes", _recovery),
    ),
)
