"""Is there a driver, the right one, and does it answer?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered, skip
from dgxcheck.checks.engine.gaps import is_driver_query, missing_in, unjudged
from dgxcheck.checks.engine.per_gpu import per_gpu
from dgxcheck.checks.engine.visibility import in_container
from dgxcheck.facts.gpu import GpuModes
from dgxcheck.facts.host import DeviceNodes
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.topology.model import Device

Judged = Iterator[tuple[Subject, Judgement]]


def bound(gpu: Device) -> str | Missing | None:
    """The kernel driver of a GPU; None where none is bound."""
    if gpu.function is None:
        return Missing(Gap.ABSENT, f"/sys/bus/pci/devices/{gpu.bdf}")
    return gpu.function.driver


def gpu_nodes(box: Box) -> list[bool] | Missing:
    """Which of ``/dev/nvidia<minor>`` can be opened from here."""
    nodes = box.snapshot.device_nodes
    gpus = nodes.gpus if isinstance(nodes, DeviceNodes) else nodes
    return gpus if isinstance(gpus, Missing) else [node.opens is True for node in gpus]


def _library(box: Box) -> Judged:
    yield HOST, _library_judged(box)


def _library_judged(box: Box) -> Judgement:
    nvml = box.nvml
    if not isinstance(nvml, Missing):
        version = nvml.driver_version
        return Judgement(
            Status.PASS, f"NVML answers, driver {'not known' if isinstance(version, Missing) else version}"
        )
    senseless = nvml.gap is Gap.GARBLED and not nvml.detail.startswith("NVML ")  # no error code of NVML's either
    if senseless or nvml.gap in (Gap.UNRECORDED, Gap.TIMEOUT, Gap.DENIED):
        return unjudged(nvml)
    if not box.topology.gpus:
        return skip("not-visible", "no NVIDIA GPU is visible here")
    drivers = {driver for driver in map(bound, box.topology.gpus) if isinstance(driver, str)}
    if drivers and "nvidia" not in drivers:
        return skip("not-visible", f"the GPUs are bound to {', '.join(sorted(drivers))}")
    nodes = gpu_nodes(box)
    if in_container(box) and nvml.gap is Gap.ABSENT and (isinstance(nodes, Missing) or not any(nodes)):
        return skip("not-visible", "this container was given no GPU: no device node opens")
    message = f"GPUs are here, but NVML does not answer: {nvml}"
    return Judgement(Status.FAIL, message, evidence=(Evidence(nvml.where, nvml.reason),))


def _responsive(box: Box) -> Judged:
    late = [gap for gap in missing_in(box.snapshot) if gap.gap is Gap.TIMEOUT and is_driver_query(gap)]
    if late:
        message = f"questions that the driver did not answer: {len(late)}, the first {late[0].where}: {late[0]}"
        evidence = tuple(Evidence(gap.where, gap.reason) for gap in late[:10])
        yield HOST, Judgement(Status.FAIL, message, len(late), 0, "questions", evidence)
    elif isinstance(box.nvml, Missing) and box.nvml.gap is Gap.UNRECORDED:
        yield HOST, unjudged(box.nvml)
    elif isinstance(box.nvml, Missing):
        yield HOST, skip("dependency-failed", f"NVML was not asked more: {box.nvml.where}: {box.nvml}")
    else:
        yield HOST, Judgement(Status.PASS, "the driver answered every question", 0, 0, "questions")


def _nouveau(box: Box) -> Judged:
    for gpu in box.gpus:
        driver = bound(gpu)
        if isinstance(driver, Missing):
            yield box.subject(gpu), unjudged(driver)
            continue
        if driver not in ("nvidia", "nouveau"):
            yield box.subject(gpu), skip("not-visible", f"bound to {driver or 'no driver'}")
            continue
        evidence = (Evidence(f"/sys/bus/pci/devices/{gpu.bdf}/driver", driver),)
        status = Status.FAIL if driver == "nouveau" else Status.PASS
        yield box.subject(gpu), Judgement(status, f"bound to {driver}", driver, "nvidia", "", evidence)


def _persistence(_: Box, modes: GpuModes) -> Judgement | Missing:
    if isinstance(modes.persistence, Missing):
        return modes.persistence
    evidence = (answered(int(modes.persistence), "nvmlDeviceGetPersistenceMode", modes.bdf),)
    word, status = ("on", Status.PASS) if modes.persistence else ("off", Status.WARN)
    return Judgement(status, f"persistence mode is {word}", word, "on", evidence=evidence)


CHECKS = (
    Check(
        id="driver.library",
        rule="Fails where GPUs are on the PCI tree and NVML does not answer at all; GPUs bound to another driver, and"
        " those that a container was not given, are not judged.",
        source="nvmlInit, nvmlDeviceGetCount",
        remedy="install the driver and load the module nvidia; after an upgrade unload the old modules or reboot",
        judge=_library,
    ),
    Check(
        id="driver.responsive",
        rule="Fails where the driver did not answer a question within --deadline, or died of it.",
        source="dgxcheck's own time limit",
        remedy="look for Xid and hung tasks in the kernel log; collect nvidia-bug-report.sh, then reboot",
        judge=_responsive,
    ),
    Check(
        id="driver.nouveau",
        rule="Fails where the kernel driver nouveau holds an NVIDIA GPU.",
        source="link driver of /sys/bus/pci/devices",
        remedy="blacklist nouveau, make the initramfs anew and reboot",
        judge=_nouveau,
    ),
    Check(
        id="driver.persistence",
        rule="Warns where persistence mode is off: the driver then sets a GPU up anew for each first client, and"
        " forgets its error counters and settings.",
        source="nvmlDeviceGetPersistenceMode; https://docs.nvidia.com/deploy/driver-persistence/index.html",
        remedy="enable the service nvidia-persistenced, or nvidia-smi -pm 1",
        judge=per_gpu("gpu_modes", _persistence),
    ),
)
