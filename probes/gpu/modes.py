"""Modes that an administrator sets on a GPU, and states that ask for one."""

from __future__ import annotations

from dgxcheck.facts.gpu import Fabric, GpuModes
from dgxcheck.facts.ids import RECOVERY_ACTION
from dgxcheck.facts.missing import Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import each
from probes.gpu.values import as_text, fields, flag, is_on, member, number, outputs


def probe(source: Source) -> tuple[GpuModes, ...] | Missing:
    """``nvmlDeviceGetPersistenceMode``, ``GetComputeMode``, ``GetMigMode``, ``GetGpuFabricInfo`` and the like."""
    return each(source, _modes)


def _modes(source: Source, bdf: str) -> GpuModes:
    operation, operation_pending = outputs(source, "nvmlDeviceGetGpuOperationMode", bdf, count=2)
    mig, mig_pending = outputs(source, "nvmlDeviceGetMigMode", bdf, count=2)
    mig_mode = question("nvmlDeviceGetMigMode", bdf)
    return GpuModes(
        bdf=bdf,
        persistence=flag(source, "nvmlDeviceGetPersistenceMode", bdf),
        compute_mode=number(source, "nvmlDeviceGetComputeMode", bdf),
        operation_mode=operation,
        operation_mode_pending=operation_pending,
        mig=is_on(mig, mig_mode),
        mig_pending=is_on(mig_pending, mig_mode),
        display_mode=flag(source, "nvmlDeviceGetDisplayMode", bdf),
        display_active=flag(source, "nvmlDeviceGetDisplayActive", bdf),
        recovery_action=number(source, "nvmlDeviceGetFieldValues", bdf, RECOVERY_ACTION),
        fabric=_fabric(source, bdf),
    )


def _fabric(source: Source, bdf: str) -> Fabric | Missing:
    info, where = fields(source, "nvmlDeviceGetGpuFabricInfo", bdf), question("nvmlDeviceGetGpuFabricInfo", bdf)
    if isinstance(info, Missing):
        return info
    return Fabric(
        state=member(info, "state", where),
        status=member(info, "status", where),
        clique_id=member(info, "cliqueId", where),
        cluster_uuid=as_text(info.get("clusterUuid"), f"{where} clusterUuid"),
    )
