"""The NVLink domains that the GPUs of one machine belong to, where NVSwitches join several machines."""

from __future__ import annotations

from dgxcheck.facts.gpu import Fabric, GpuModes
from dgxcheck.facts.missing import Missing, rows
from dgxcheck.survey import Snapshot

_REGISTERED = 3


def nvlink_domains(snapshot: Snapshot) -> tuple[str, ...]:
    """``CLUSTER_UUID.CLIQUE`` of the GPUs that are registered with a fabric manager, distinct and in order.

    A cluster UUID of zeros is a domain that ends at the machine (DGX A100, HGX H100); those are left out.
    https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/overview.html
    """
    modes = rows(snapshot.gpu_modes)
    return tuple(sorted({domain for each in modes if (domain := _domain(each))}))


def _domain(modes: GpuModes) -> str:
    fabric = modes.fabric
    if not isinstance(fabric, Fabric) or fabric.state != _REGISTERED:
        return ""
    if isinstance(fabric.cluster_uuid, Missing) or isinstance(fabric.clique_id, Missing):
        return ""
    return f"{fabric.cluster_uuid}.{fabric.clique_id}" if fabric.cluster_uuid.strip("0-") else ""
