"""Is the InfoROM readable, which holds the board's identity, settings and error history?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.blame import part
from dgxcheck.checks.engine.box import Box, gpu_unavailable
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.fault import Fault
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered
from dgxcheck.checks.engine.per_gpu import ruled
from dgxcheck.checks.engine.siblings import siblings
from dgxcheck.facts.gpu import GpuBoard
from dgxcheck.facts.ids import NvmlReturn
from dgxcheck.facts.missing import Gap, Missing, need
from dgxcheck.topology.model import Device


def _inforom(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    corrupted = [gap for gap in box.gaps if gap.code == NvmlReturn.CORRUPTED_INFOROM]
    for gpu in box.gpus:
        own = [gap for gap in corrupted if gpu.bdf in gap.where.split()]
        yield box.subject(gpu), gpu_unavailable(box, gpu) or (_corrupted(own) if own else ruled(_image, box, gpu))


def _corrupted(gaps: list[Missing]) -> Judgement:
    message = f"the InfoROM is corrupted, reported by {gaps[0].where}"
    evidence = tuple(Evidence(gap.where, gap.reason) for gap in gaps[:10])
    return Judgement(Status.FAIL, message, evidence=evidence, fault=Fault.INFOROM)


def _image(box: Box, gpu: Device) -> Judgement | Missing:
    board = need(box.gpu(gpu).board)
    version = board.inforom_image
    if isinstance(version, str):
        evidence = answered(version, "nvmlDeviceGetInforomImageVersion", board.bdf)
        return Judgement(Status.PASS, f"InfoROM image version {version}", version, evidence=(evidence,))
    others = [row.inforom_image for other in siblings(box, gpu) if isinstance(row := box.gpu(other).board, GpuBoard)]
    usual = next((image for image in others if isinstance(image, str)), None)
    if version.gap not in (Gap.UNSUPPORTED, Gap.ABSENT) or usual is None:
        return version
    evidence = answered(version.reason, "nvmlDeviceGetInforomImageVersion", board.bdf)
    message = f"the InfoROM has no image version, others of the model have {usual}"
    return Judgement(Status.WARN, message, None, usual, evidence=(evidence,), fault=Fault.INFOROM)


CHECKS = (
    Check(
        id="gpu.inforom",
        rule="Fails if NVML reports a corrupted InfoROM in answer to any query; warns if the InfoROM has no image"
        " version and other GPUs of the model have one.",
        source="NVML_ERROR_CORRUPTED_INFOROM; nvmlDeviceGetInforomImageVersion;"
        " https://github.com/NVIDIA/DCGM/issues/2",
        remedy="at the next maintenance run the field diagnostic (dcgmi diag -r 3) and have the vendor write the"
        " InfoROM again",
        judge=_inforom,
        blames=part("InfoROM"),
    ),
)
