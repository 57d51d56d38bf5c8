"""What a fleet compares of one machine: versions of driver, firmware and kernel, and the NVLink domain."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dgxcheck.facts.gpu import Fabric, GpuModes, Nvml
from dgxcheck.facts.host import Host
from dgxcheck.facts.missing import Json, Missing, rows
from dgxcheck.survey import Snapshot


def versions(snapshot: Snapshot) -> Mapping[str, tuple[str, ...]]:
    """What could be read, by name: ``driver``, ``cuda``, ``vbios``, ``kernel``, ``bios``, ``os``, and the firmware of
    each model of HCA by its board id (PSID); each with its distinct values in order.
    """
    found: dict[str, set[str]] = {}
    for name, value in _read(snapshot):
        if not isinstance(value, Missing) and value:
            found.setdefault(name, set()).add(value)
    return {name: tuple(sorted(values)) for name, values in sorted(found.items())}


def gpu_models(snapshot: Snapshot) -> Mapping[str, int]:
    """How many GPUs of each model NVML lists; a GPU without a name is left out."""
    gpus = snapshot.gpu.gpus if isinstance(snapshot.gpu, Nvml) else ()
    names = [gpu.name for gpu in gpus if not isinstance(gpu.name, Missing)]
    return {name: names.count(name) for name in sorted(set(names))}


def _read(snapshot: Snapshot) -> Iterator[tuple[str, str | Missing]]:
    nvml, host, hcas = snapshot.gpu, snapshot.host, snapshot.infiniband
    if isinstance(nvml, Nvml):
        yield "driver", nvml.driver_version
        if not isinstance(nvml.cuda_version, Missing):
            yield "cuda", f"{nvml.cuda_version // 1000}.{nvml.cuda_version % 1000 // 10}"
        yield from (("vbios", gpu.vbios) for gpu in nvml.gpus)
    if isinstance(host, Host):
        yield "kernel", host.kernel_release
        yield "bios", host.dmi.bios_version
        if not isinstance(host.os_release, Missing):
            yield "os", host.os_release.get("PRETTY_NAME", "")
    for hca in rows(hcas):
        if hca.is_vf is False and not isinstance(hca.board_id, Missing):
            yield f"firmware {hca.board_id}", hca.fw_ver


_REGISTERED = 3


def nvlink_domains(snapshot: Snapshot) -> tuple[str, ...]:
    """``CLUSTER_UUID.CLIQUE`` of the GPUs that are registered with a fabric manager, distinct and in order.

    A cluster UUID of zeros is a domain that ends at the machine (DGX A100, HGX H100); those are left out.
    https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/overview.html
    """
    modes = rows(snapshot.gpu_modes)
    return tuple(sorted({domain for each in modes if (domain := _domain(each))}))


def nvlinks(snapshot: Snapshot) -> Mapping[str, Mapping[str, Json]]:
    """Of GPUs in such a domain: how many NVLinks each has, and the positions of those that are down, by GPU."""
    gpus = snapshot.gpu.gpus if isinstance(snapshot.gpu, Nvml) and nvlink_domains(snapshot) else ()
    found: dict[str, Mapping[str, Json]] = {}
    for gpu in gpus:
        states = [row for row in rows(snapshot.nvlink) if row.bdf == gpu.bdf and isinstance(row.up, bool)]
        if states and isinstance(gpu.index, int):
            found[f"GPU{gpu.index}"] = {"wired": len(states), "down": [row.link for row in states if not row.up]}
    return found


def _domain(modes: GpuModes) -> str:
    fabric = modes.fabric
    if not isinstance(fabric, Fabric) or fabric.state != _REGISTERED:
        return ""
    if isinstance(fabric.cluster_uuid, Missing) or isinstance(fabric.clique_id, Missing):
        return ""
    return f"{fabric.cluster_uuid}.{fabric.clique_id}" if fabric.cluster_uuid.strip("0-") else ""
