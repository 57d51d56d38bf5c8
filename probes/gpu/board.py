"""A GPU's board: PCI ids, architecture, part number, InfoROM."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuBoard
from dgxcheck.facts.missing import Gap, Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.quantities import facts_of
from probes.gpu.values import U32, number, outputs


def probe(source: Source) -> tuple[GpuBoard, ...] | Missing:
    """``nvmlDeviceGetPciInfo``, ``GetArchitecture``, ``GetInforomVersion`` and the like of every GPU."""
    return per_gpu(source, _board)


def _board(source: Source, bdf: str) -> GpuBoard:
    return GpuBoard(
        bdf=bdf,
        architecture=_architecture(source, bdf),
        compute_capability=_compute_capability(source, bdf),
        **facts_of(source, "board", bdf),
    )


def _architecture(source: Source, bdf: str) -> int | Missing:
    """NVML_DEVICE_ARCH_UNKNOWN is all ones."""
    architecture = number(source, "nvmlDeviceGetArchitecture", bdf)
    if architecture == U32:
        return Missing(Gap.UNSUPPORTED, question("nvmlDeviceGetArchitecture", bdf), "unknown to the driver")
    return architecture


def _compute_capability(source: Source, bdf: str) -> tuple[int, int] | Missing:
    major, minor = outputs(source, "nvmlDeviceGetCudaComputeCapability", bdf, count=2)
    if isinstance(major, Missing):
        return major
    return minor if isinstance(minor, Missing) else (major, minor)
