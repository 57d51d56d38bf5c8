"""Is the memory on the board that holds its identity, settings and error history readable?"""

from __future__ import annotations

from collections.abc import Iterator

from dgxcheck.checks.engine.box import Box, gpu_unavailable, row_of
from dgxcheck.checks.engine.check import Check
from dgxcheck.checks.engine.finding import Evidence, Judgement, Status, Subject, answered
from dgxcheck.checks.engine.gaps import missing_in, unjudged
from dgxcheck.checks.engine.siblings import siblings
from dgxcheck.facts.gpu import GpuBoard
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.topology.model import Device

_CORRUPTED = "NVML 14:"


def _inforom(box: Box) -> Iterator[tuple[Subject, Judgement]]:
    corrupted = [gap for gap in missing_in(box.snapshot) if gap.detail.startswith(_CORRUPTED)]
    for gpu in box.gpus:
        own = [gap for gap in corrupted if gpu.bdf in gap.where.split()]
        yield box.subject(gpu), gpu_unavailable(box, gpu) or (_fail(own) if own else _version(box, gpu))


def _fail(gaps: list[Missing]) -> Judgement:
    evidence = tuple(Evidence(gap.where, gap.reason) for gap in gaps[:10])
    return Judgement(Status.FAIL, f"the InfoROM is corrupted: {gaps[0].where}: {gaps[0]}", evidence=evidence)


def _version(box: Box, gpu: Device) -> Judgement:
    row = row_of(box.snapshot.gpu_board, gpu.bdf)
    if not isinstance(row, GpuBoard):
        return unjudged(row) if isinstance(row, Missing) else row
    version = row.inforom_image
    if isinstance(version, str):
        evidence = answered(version, "nvmlDeviceGetInforomImageVersion", row.bdf)
        return Judgement(Status.PASS, f"InfoROM image {version}", version, evidence=(evidence,))
    if version.gap in (Gap.UNSUPPORTED, Gap.ABSENT) and (others := _versions(box, gpu)):
        evidence = answered(version.reason, "nvmlDeviceGetInforomImageVersion", row.bdf)
        message = f"the InfoROM tells no image version, others of its model have {others[0]}"
        return Judgement(Status.WARN, message, None, others[0], evidence=(evidence,))
    return unjudged(version)


def _versions(box: Box, gpu: Device) -> list[str]:
    rows = (row_of(box.snapshot.gpu_board, other.bdf) for other in siblings(box, gpu))
    return [row.inforom_image for row in rows if isinstance(row, GpuBoard) and isinstance(row.inforom_image, str)]


CHECKS = (
    Check(
        id="gpu.inforom",
        rule="Fails where NVML calls a GPU's InfoROM corrupted, in whatever answer; warns where it tells no image"
        " version and others of its model do.",
        source="NVML_ERROR_CORRUPTED_INFOROM; nvmlDeviceGetInforomImageVersion;"
        " https://github.com/NVIDIA/DCGM/issues/2",
        remedy="reboot; if it stays, have the vendor restore the InfoROM or replace the board",
        judge=_inforom,
    ),
)
