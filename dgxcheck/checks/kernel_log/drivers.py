"""Errors of the drivers of GPUs and HCAs that no other check reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.checks.engine.blame import component_of
from dgxcheck.checks.engine.box import HOST, Box
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Judged, Judgement, Status, Subject, judged
from dgxcheck.checks.engine.wording import counted
from dgxcheck.checks.kernel_log.device_log import grouped, lines, nothing_logged, reach, subject_at
from dgxcheck.components.component import DRIVER, Component, host_part
from dgxcheck.facts.bdf import gpu_at
from dgxcheck.facts.faults import Fault
from dgxcheck.facts.kernel_log import DriverError, KernelLog
from dgxcheck.facts.missing import need
from dgxcheck.facts.record import replace

_NVIDIA = "nvidia"
_OF_NVIDIA = ("xids", "sxids", "off_bus", "not_started", "refused", "modules")
_OF_HOST = ("nvlink", "fabric", "no BAR")
_LONGEST = 160


def _driver_errors(box: Box) -> Judged:
    """Of a driver whose log holds an event that other checks judge they are its details."""
    log = need(box.snapshot.kernel_log)
    now = [error for error in log.driver_errors if not error.past]
    if not now:
        yield HOST, nothing_logged(log, "no error in words that no other check reads")
    for place, own in grouped((f"{error.driver} {error.bdf}", error) for error in now).items():
        driver, _, bdf = place.partition(" ")
        at = _subject(box, driver, bdf) if bdf else replace(HOST, part=f"{driver} driver")
        if _is_explained(log, driver):
            message = f"{counted(len(own), 'line')} beside what other checks read of this driver{reach(log)}"
            yield at, Judgement(Status.PASS, message, len(own), 0, "lines", lines(log, own))
        else:
            yield at, _error(log, own)


def _subject(box: Box, driver: str, bdf: str) -> Subject:
    at = subject_at(box, bdf)
    if at.kind != "pci" or bdf in box.topology.functions:
        return at
    return Subject(kind="gpu", name=gpu_at(bdf), bdf=bdf) if driver == _NVIDIA else replace(at, kind="hca")


def _is_explained(log: KernelLog, driver: str) -> bool:
    if driver != _NVIDIA:
        return any(not event.past for event in log.hcas)
    return any(not event.past for name in _OF_NVIDIA for event in getattr(log, name)) or any(
        event.trouble in _OF_HOST and not event.past for event in log.host
    )


def _error(log: KernelLog, errors: Sequence[DriverError]) -> Judgement:
    other = len({error.line for error in errors}) - 1
    more = f", and {counted(other, 'other line')}" if other else ""
    message = f"an error that no other check reads: {errors[0].line[:_LONGEST].rstrip(' .')}{more}{reach(log)}"
    return judged(Fault.DRIVER_ERROR, message, len(errors), 0, "lines", lines(log, errors), warns=True)


def _blames(box: Box, at: Subject, judgement: Judgement) -> Iterator[Component]:
    if at.kind == "host":
        yield DRIVER if at.part.startswith(_NVIDIA) else host_part("HCA driver")
    else:
        yield component_of(box, at)


CHECKS = (
    Check(
        id="kernel.driver-errors",
        rule="Warns if the driver of the GPUs (NVRM, nvidia, nvidia-uvm, nvidia-nvlink, nvidia-nvswitch, nvidia-fs,"
        " nvidia_peermem) or of the HCAs (mlx5_core, mlx5_ib) logged an error, since it was last loaded, in words that"
        " no other check reads, and nothing that one reads. Assertions, a module without a signature and refused"
        " commands of an HCA are no such errors.",
        source="the kernel log; NVIDIA open-gpu-kernel-modules, Linux drivers/net/ethernet/mellanox/mlx5",
        remedy=Fault.DRIVER_ERROR.remedy,
        judge=_driver_errors,
        blames=_blames,
    ),
)
