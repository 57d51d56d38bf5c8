"""GPUs that their driver could not start, by the kernel log."""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject
from dgxcheck.checks.kernel_log.device_log import gpu_itself, lines, per_device, reach
from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.kernel_log import KernelLog
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.model import Device

_POWER = (
    "power off and connect the GPU's auxiliary power cables; if they are connected, check the power supplies and the"
    " BMC's event log"
)
_BARS = (
    "enable Above 4G Decoding in the firmware setup and update it, or boot with pci=realloc; in a virtual machine give"
    " it a larger 64-bit MMIO window (QEMU: pci-hole64-size, VMware: pciPassthru.64bitMMIOSizeGB)"
)
_LATE = "watch it: if it happens again, cold power cycle, then check the GPU's power cables and seating"


def _only_unlisted(box: Box) -> Device | None:
    """The one GPU that NVML does not list: lines without a bus id are about it. None where there are more or none."""
    unlisted = [gpu for gpu in box.topology.gpus if gpu.index is None]
    return unlisted[0] if len(unlisted) == 1 else None


def _start(box: Box, log: KernelLog, bdf: str, gpu: Device | None) -> Judgement | None:
    own = gpu is not None and gpu == _only_unlisted(box)
    all_times = [each for each in log.not_started if each.bdf == bdf or (own and each.bdf is None)]
    now = [each for each in all_times if not each.past]
    if not now:
        before = f"the driver could not start it before it was last loaded{reach(log)}"
        return Judgement(Status.PASS, before) if all_times else None
    unpowered, bars = (any(each.why == why for each in now) for why in ("power", "bars"))
    why = ": auxiliary power is not connected" if unpowered else ": a BAR has no valid address" if bars else ""
    if gpu is not None and gpu.index is not None:
        message = f"the driver could not start it at first{why}; NVML lists it now{reach(log)}"
        status, fault, remedy = Status.WARN, Fault.GPU_STARTED_LATE, _POWER if unpowered else _LATE
    else:
        message = f"the driver could not start it{why}{reach(log)}"
        status, fault = Status.FAIL, Fault.GPU_UNPOWERED if unpowered else Fault.GPU_NOT_STARTED
        fault = Fault.BAR1_SMALL if bars and not unpowered else fault
        remedy = _POWER if unpowered else _BARS if bars else ""
    return Judgement(status, message, evidence=lines(log, now), fault=fault, remedy=remedy)


def _starts(box: Box) -> Judged:
    yield from _PER_GPU(box)
    log = box.snapshot.kernel_log
    if isinstance(log, Missing) or _only_unlisted(box) is not None:
        return
    now = [each for each in log.not_started if each.bdf is None and not each.past]
    if now:
        message = f"the driver could not start a GPU; its log line does not name which{reach(log)}"
        yield HOST, Judgement(Status.WARN, message, evidence=lines(log, now), fault=Fault.GPU_NOT_STARTED)


_PER_GPU = per_device(
    _start, lambda log: [each.bdf for each in log.not_started if each.bdf is not None], "no failed start logged"
)


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    if at.kind == "host":
        yield host_part("start of a GPU")
    elif judgement.fault is Fault.BAR1_SMALL:
        yield host_part("large BARs")
    else:
        yield from gpu_itself(box, at, judgement)


def _shared(box: Box, at: Subject, judgement: Judgement) -> Component | None:
    """The driver, which starts no GPU at all; not where it says why of each, nor where its codes differ."""
    log = box.snapshot.kernel_log
    codes = {each.code for each in (() if isinstance(log, Missing) else log.not_started)}
    return DRIVER if judgement.fault is Fault.GPU_NOT_STARTED and len(codes - {""}) <= 1 else None


CHECKS = (
    Check(
        id="kernel.gpu-start",
        rule="Fails if the driver logged, since it was last loaded, that it could not start a GPU (RmInitAdapter"
        " failed, probe failed), that its power cables are not connected or that a BAR has no valid address; warns if"
        " NVML lists that GPU now, or if the line of an old driver does not name the GPU.",
        source="NVRM lines of NVIDIA's open-gpu-kernel-modules, src/nvidia/arch/nvalloc/unix/src/osinit.c",
        remedy="reboot, then cold power cycle; if it comes back, check the GPU's power cables and seating and that this"
        " driver supports the board, then call the vendor with the file of nvidia-bug-report.sh",
        judge=_starts,
        blames=_blames,
        shared=_shared,
        witness="log",
    ),
)
