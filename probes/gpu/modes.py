"""Modes that an administrator sets on a GPU, and states that ask for one."""

from __future__ import annotations

from dgxcheck.facts.gpu import Fabric, GpuModes
from dgxcheck.facts.missing import Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.quantities import facts_of
from probes.gpu.values import as_text, fields, member


def probe(source: Source) -> tuple[GpuModes, ...] | Missing:
    """``nvmlDeviceGetPersistenceMode``, ``GetComputeMode``, ``GetMigMode``, ``GetGpuFabricInfo`` and the like."""
    return per_gpu(source, _modes)


def _modes(source: Source, bdf: str) -> GpuModes:
    return GpuModes(bdf=bdf, fabric=_fabric(source, bdf), **facts_of(source, "modes", bdf))


def _fabric(source: Source, bdf: str) -> Fabric | Missing:
    info, where = fields(source, "nvmlDeviceGetGpuFabricInfo", bdf), question("nvmlDeviceGetGpuFabricInfo", bdf)
    if isinstance(info, Missing):
        return info
    return Fabric(
        state=member(info, "state", where),
        status=member(info, "status", where),
        clique_id=member(info, "cliqueId", where),
        cluster_uuid=as_text(info.get("clusterUuid"), f"{where} clusterUuid"),
        health_mask=member(info, "healthMask", where),
        health_summary=member(info, "healthSummary", where),
    )
