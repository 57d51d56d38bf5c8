"""What the drivers of GPUs and HCAs log of NVLinks as a whole, and errors in words that dgxcheck does not know."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.box import HOST, Box, unlisted_gpu
from dgxcheck.checks.engine.check import Check, component_of
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, counted, judged
from dgxcheck.checks.kernel_log.device_log import events_of, grouped, lines, nothing_logged, reach, subject_at
from dgxcheck.components.component import DRIVER, FABRIC_MANAGER, Component, host_part
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.faults.kind import FaultKind
from dgxcheck.facts.kernel_log import GPU_DRIVER, DriverError, HostTrouble, KernelLog, LoggedEvent, Xid
from dgxcheck.facts.missing import need
from dgxcheck.facts.record import replace
from dgxcheck.xid.table import meaning

_OF_GPUS = ("xids", "sxids", "off_bus", "not_started", "modules")
_OF_HOST: tuple[HostTrouble, ...] = ("nvlink", "fabric", "no BAR")
_FINAL = {
    Fault.DRIVER_REBOOT: "its driver asks for a reboot",
    Fault.CONFIDENTIAL_COMPUTING: "its driver takes no more work in confidential computing mode",
}
_BESIDE_S = 60.0
_QUOTED = 160


def _driver_errors(box: Box) -> Judged:
    """Warns if the driver of the GPUs (NVRM, nvidia, nvidia-uvm, nvidia-nvlink, nvidia-nvswitch, nvidia-fs,
    nvidia_peermem) or of the HCAs (mlx5_core, mlx5_ib, efa) logged, since it was last loaded, an error that dgxcheck
    does not know, unless another check reports an event of that device or of the same minute; fails if such a line asks
    for a reboot and no GPU fell off the bus within a minute before it, or tells of a fatal error in confidential
    computing mode. Assertions, a module without a signature and
    refused commands of an HCA are no such errors.

    Source: the kernel log; NVIDIA open-gpu-kernel-modules, Linux drivers/net/ethernet/mellanox/mlx5,
    drivers/infiniband/hw/efa

    By driver and device; details of an event that another check reads pass.
    """
    log = need(box.snapshot.kernel_log)
    now = [error for error in log.driver_errors if not error.past]
    if not now:
        yield HOST, nothing_logged(log, "no unknown driver error")
    for place, own in grouped((f"{error.driver} {error.bdf}", error) for error in now).items():
        driver, _, bdf = place.partition(" ")
        at = _subject(box, driver, bdf) if bdf else replace(HOST, part=f"{driver} driver")
        final = [error for error in own if _final(error) is not None and not _follows_a_loss(log, error)]
        if left := final or [error for error in own if not _is_detail(log, error)]:
            yield at, _error(log, left)
        else:
            message = f"{counted(len(own), 'line')} beside what other checks read of this driver{reach(log)}"
            yield at, Judgement(Status.PASS, message, len(own), 0, "lines", lines(log, own))


def _final(error: DriverError) -> FaultKind | None:
    from dgxcheck.kernel_messages.driver_errors import final_fault  # with all other forms, where a log was read

    return final_fault(error.line)


def _subject(box: Box, driver: str, bdf: str) -> Subject:
    at = subject_at(box, bdf)
    if at.kind != "pci" or bdf in box.topology.functions:
        return at
    return unlisted_gpu(bdf) if driver == GPU_DRIVER else replace(at, kind="hca")


def _is_detail(log: KernelLog, error: DriverError) -> bool:
    """Of an event of its device, a PCIe error among them, or one that this driver logged within a minute; a program's
    own Xid has none."""
    events: list[LoggedEvent] = [*log.hcas] if error.driver != GPU_DRIVER else [*events_of(log, *_OF_HOST)]
    events += (each for each in log.pcie if each.severity != "corrected" and each.bdf == error.bdf)
    for name in _OF_GPUS if error.driver == GPU_DRIVER else ():
        events += getattr(log, name)
    return any(
        not event.past and not _is_of_program(event)
        and (getattr(event, "bdf", "") == (error.bdf or None) or not log.timed
             or abs(event.seconds - error.seconds) <= _BESIDE_S)
        for event in events
    )  # fmt: skip


def _follows_a_loss(log: KernelLog, error: DriverError) -> bool:
    """Did a GPU fall off the bus within a minute before? What is to be done about that includes a reboot."""
    return any(not lost.past and 0 <= error.seconds - lost.seconds <= _BESIDE_S for lost in log.off_bus)


def _is_of_program(event: LoggedEvent) -> bool:
    return isinstance(event, Xid) and meaning(event.number, None).severity == "application"


def _error(log: KernelLog, errors: Sequence[DriverError]) -> Judgement:
    other = len({error.line for error in errors}) - 1
    more = f", and {counted(other, 'other line')}" if other else ""
    fault = _final(errors[0]) or Fault.DRIVER_ERROR
    what = _FINAL.get(fault, "unknown driver error")
    message = f"{what}: {errors[0].line[:_QUOTED].rstrip(' .')}{more}{reach(log)}"
    return judged(fault, message, len(errors), 0, "lines", lines(log, errors), warns=True, fails=fault in _FINAL)


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    if at.kind == "host":
        yield DRIVER if at.part.startswith(GPU_DRIVER) else host_part("HCA driver")
    else:
        yield component_of(box, at)


_OF_NVLINKS: dict[HostTrouble, tuple[FaultKind, str]] = {
    "nvlink": (Fault.NVLINK_UNDETECTED, "could not detect which NVLinks of a GPU are connected"),
    "fabric": (Fault.FABRIC_OUT_OF_SYNC, "the driver's state of the NVSwitch fabric is out of date, NVLS fails"),
}


def _nvlinks(box: Box) -> Judged:
    """Warns if the driver logged, since it was last loaded, that it could not detect which NVLinks of a GPU are
    connected: peer transfers then take PCIe, and programs may hang; or that the state of the NVSwitch fabric that it
    knows is out of date, as after a restart of the fabric manager while jobs ran: NCCL then fails to set up NVLS.

    Source: NVIDIA's open-gpu-kernel-modules, src/nvidia/src/kernel/gpu/nvlink/kernel_nvlink.c and
    mem_mgr/mem_multicast_fabric.c
    """
    log = need(box.snapshot.kernel_log)
    found = {trouble: [event for event in events_of(log, trouble) if not event.past] for trouble in _OF_NVLINKS}
    if not any(found.values()):
        yield HOST, Judgement(Status.PASS, f"no failure to detect NVLinks logged{reach(log)}")
    for trouble, (fault, message) in _OF_NVLINKS.items():
        if events := found[trouble]:
            at = HOST if trouble == "nvlink" else replace(HOST, part=trouble)
            text, evidence = f"{message}{reach(log)}", lines(log, events)
            yield at, judged(fault, text, len(events), 0, "", evidence, warns=True, remedy=fault.remedy)


NVLINK = (
    Check("kernel.nvlink", _nvlinks, lambda box, at, judgement: (FABRIC_MANAGER if at.part else DRIVER,),
        remedy="nvidia-smi nvlink -s; compare all GPUs, and their GPU Recovery Action in nvidia-smi -q"),
)  # fmt: skip
CHECKS = (
    Check("kernel.driver-errors", _driver_errors, _blames, remedy=Fault.DRIVER_ERROR.remedy),
)  # fmt: skip
