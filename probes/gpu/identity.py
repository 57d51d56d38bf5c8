"""The GPUs that NVML lists: who they are, how they are set up, and what runs on them."""

from __future__ import annotations

from dgxcheck.facts.missing import Gap, Missing, need, or_gap, question, rows
from dgxcheck.facts.nvml.gpu import Fabric, Gpu, GpuActivity, GpuAffinity, GpuBoard, GpuModes, GpuProcess, Nvml
from dgxcheck.facts.nvml.quantities import U64
from dgxcheck.facts.sysfs import cpulist, runs_of
from dgxcheck.source.protocol import Json, Source
from probes.gpu.answers import (
    U32,
    as_number,
    as_text,
    bdfs,
    count,
    facts_of,
    fields,
    garbled,
    member,
    number,
    numbers,
    outputs,
    per_gpu,
    start,
    structs,
    text,
)


def gpu(source: Source) -> Nvml | Missing:
    """``nvmlSystemGet...`` and the identity of every GPU; missing where NVML cannot be used."""
    if (gap := start(source)) is not None:
        return gap
    found = rows(bdfs(source))
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
    """-1, the kernel's NUMA_NO_NODE, also reads as all ones."""
    return number(source, "nvmlDeviceGetNumaNodeId", bdf, unknown=dict.fromkeys((-1, U32), "no NUMA node"))


def gpu_board(source: Source) -> tuple[GpuBoard, ...] | Missing:
    """``nvmlDeviceGetPciInfo``, ``GetArchitecture``, ``GetInforomVersion`` and the like of every GPU."""
    return per_gpu(source, _board)


def _board(source: Source, bdf: str) -> GpuBoard:
    return GpuBoard(bdf=bdf, architecture=_architecture(source, bdf),
                    compute_capability=_compute_capability(source, bdf), **facts_of(source, "board", bdf))


def _architecture(source: Source, bdf: str) -> int | Missing:
    """NVML_DEVICE_ARCH_UNKNOWN is all ones."""
    return number(source, "nvmlDeviceGetArchitecture", bdf, unknown={U32: "unknown to the driver"})


@or_gap
def _compute_capability(source: Source, bdf: str) -> tuple[int, int]:
    major, minor = outputs(source, "nvmlDeviceGetCudaComputeCapability", bdf, count=2)
    return need(major), need(minor)


def gpu_modes(source: Source) -> tuple[GpuModes, ...] | Missing:
    """``nvmlDeviceGetPersistenceMode``, ``GetComputeMode``, ``GetMigMode``, ``GetGpuFabricInfo`` and the like."""
    return per_gpu(source, _modes)


def _modes(source: Source, bdf: str) -> GpuModes:
    modes = facts_of(source, "modes", bdf)
    return GpuModes(bdf=bdf, fabric=_fabric(source, bdf), gpu_instances=_instances(source, bdf, modes["mig"]), **modes)


@or_gap
def _instances(source: Source, bdf: str, mig: bool | Missing) -> int | Missing:
    """``gi1`` and the like below ``/proc/driver/nvidia/capabilities/gpu0/mig``, by minor number: MIG user guide."""
    if not need(mig):
        return Missing(Gap.UNSUPPORTED, question("nvmlDeviceGetMigMode", bdf), "MIG mode is off")
    minor = need(number(source, "nvmlDeviceGetMinorNumber", bdf))
    names = need(source.names(f"/proc/driver/nvidia/capabilities/gpu{minor}/mig"))
    return sum(name.startswith("gi") for name in names)


def _fabric(source: Source, bdf: str) -> Fabric | Missing:
    info, where = fields(source, "nvmlDeviceGetGpuFabricInfo", bdf), question("nvmlDeviceGetGpuFabricInfo", bdf)
    if isinstance(info, Missing):
        return info
    # Every version of the struct has these two: where one is absent, an imported text does not show it.
    clique, cluster = (
        Missing(Gap.UNRECORDED, f"{where} {name}", "not in the text") if info.get(name) is None else info[name]
        for name in ("cliqueId", "clusterUuid")
    )
    return Fabric(
        state=member(info, "state", where),
        status=member(info, "status", where),
        clique_id=as_number(clique, f"{where} cliqueId"),
        cluster_uuid=as_text(cluster, f"{where} clusterUuid"),
        health_mask=member(info, "healthMask", where),
        health_summary=member(info, "healthSummary", where),
    )


def gpu_processes(source: Source) -> tuple[GpuActivity, ...] | Missing:
    """``nvmlDeviceGetUtilizationRates`` and ``nvmlDeviceGet...RunningProcesses`` of every GPU."""
    return per_gpu(source, _activity)


def _activity(source: Source, bdf: str) -> GpuActivity:
    compute = _processes(source, "nvmlDeviceGetComputeRunningProcesses", bdf)
    graphics = _processes(source, "nvmlDeviceGetGraphicsRunningProcesses", bdf)
    return GpuActivity(bdf=bdf, compute=compute, graphics=graphics, **facts_of(source, "activity", bdf))


@or_gap
def _processes(source: Source, function: str, bdf: str) -> tuple[GpuProcess, ...]:
    """A process whose pid is garbled spoils the list: an idle GPU is one with an empty list."""
    listed, where = structs(source, function, bdf), question(function, bdf)
    found: list[GpuProcess] = []
    for process in need(listed):
        pid = need(as_number(process.get("pid"), f"{where} pid", high=U32))
        name = text(source, "nvmlSystemGetProcessName", "", pid)
        found.append(GpuProcess(pid=pid, used_memory=_used(process, where), name=name))
    return tuple(found)


def _used(process: dict[str, Json], where: str) -> int | Missing:
    """NVML_VALUE_NOT_AVAILABLE is all ones; the Python binding makes it None, an older one may not."""
    if process.get("usedGpuMemory") == U64:
        return Missing(Gap.UNSUPPORTED, f"{where} usedGpuMemory", "not available")
    return member(process, "usedGpuMemory", where)


MAX_WORDS = 1024  # 65536 CPUs, eight times what the kernel can be built for


def gpu_affinity(source: Source) -> tuple[GpuAffinity, ...] | Missing:
    """``nvmlDeviceGetCpuAffinity`` and ``nvmlDeviceGetMemoryAffinity`` (scope: node) of every GPU."""
    return per_gpu(source, _affinity)


def members_of(words: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of the bits that are set, over 64-bit words, lowest first."""
    return tuple(64 * place + bit for place, word in enumerate(words) for bit in range(64) if word >> bit & 1)


def _affinity(source: Source, bdf: str) -> GpuAffinity:
    cpus = _mask(source, "nvmlDeviceGetCpuAffinity", bdf)
    return GpuAffinity(bdf=bdf, cpulist=cpus if isinstance(cpus, Missing) else cpulist(runs_of(cpus)),
                       memory_nodes=_mask(source, "nvmlDeviceGetMemoryAffinity", bdf, 0))


@or_gap
def _mask(source: Source, function: str, bdf: str, *args: int) -> tuple[int, ...] | Missing:
    """An empty mask is what a virtual machine without NUMA information gives."""
    words, where = need(numbers(source, function, bdf, *args)), question(function, bdf, *args)
    if len(words) > MAX_WORDS:
        return garbled(where, list(words))
    return members_of(words) or Missing(Gap.UNSUPPORTED, where, "an empty mask")
