"""The GPUs that NVML lists, and who they are."""

from __future__ import annotations

from dgxcheck.facts.gpu import Gpu, Nvml
from dgxcheck.facts.missing import Gap, Missing, question, rows
from dgxcheck.source.protocol import Source
from probes.gpu.listing import bdfs, count, start
from probes.gpu.quantities import facts_of
from probes.gpu.values import U32, number, text


def probe(source: Source) -> Nvml | Missing:
    """``nvmlSystemGet...`` and the identity of every GPU; missing where NVML cannot be used."""
    if (gap := start(source)) is not None:
        return gap
    listed = bdfs(source)
    found = rows(listed)
    return Nvml(
        driver_version=text(source, "nvmlSystemGetDriverVersion"),
        nvml_version=text(source, "nvmlSystemGetNVMLVersion"),
        cuda_version=number(source, "nvmlSystemGetCudaDriverVersion"),
        count=count(source),
        gpus=tuple(_gpu(source, index, bdf) for index, bdf in found if isinstance(bdf, str)),
        lost=tuple(bdf for _, bdf in found if isinstance(bdf, Missing)),
    )


def _gpu(source: Source, index: int | Missing, bdf: str) -> Gpu:
    return Gpu(bdf=bdf, index=index, gpu_numa_id=_numa_id(source, bdf), **facts_of(source, "identity", bdf))


def _numa_id(source: Source, bdf: str) -> int | Missing:
    """``nvmlDeviceGetNumaNodeId``: -1, the kernel's NUMA_NO_NODE, also reads as all ones."""
    node = number(source, "nvmlDeviceGetNumaNodeId", bdf, low=-1)
    if node in (-1, U32):
        return Missing(Gap.UNSUPPORTED, question("nvmlDeviceGetNumaNodeId", bdf), "no NUMA node")
    return node
