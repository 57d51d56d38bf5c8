"""What runs on a GPU."""

from __future__ import annotations

from dgxcheck.facts.gpu import GpuActivity, GpuProcess
from dgxcheck.facts.missing import Gap, Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.quantities import facts_of
from probes.gpu.values import U32, U64, as_number, member, structs, text


def probe(source: Source) -> tuple[GpuActivity, ...] | Missing:
    """``nvmlDeviceGetUtilizationRates`` and ``nvmlDeviceGet...RunningProcesses`` of every GPU."""
    return per_gpu(source, _activity)


def _activity(source: Source, bdf: str) -> GpuActivity:
    return GpuActivity(
        bdf=bdf,
        compute=_processes(source, "nvmlDeviceGetComputeRunningProcesses", bdf),
        graphics=_processes(source, "nvmlDeviceGetGraphicsRunningProcesses", bdf),
        **facts_of(source, "activity", bdf),
    )


def _processes(source: Source, function: str, bdf: str) -> tuple[GpuProcess, ...] | Missing:
    """A process whose pid is garbled spoils the list: an idle GPU is one with an empty list."""
    listed, where = structs(source, function, bdf), question(function, bdf)
    if isinstance(listed, Missing):
        return listed
    found: list[GpuProcess] = []
    for process in listed:
        if isinstance(pid := as_number(process.get("pid"), f"{where} pid", high=U32), Missing):
            return pid
        name = text(source, "nvmlSystemGetProcessName", "", pid)
        found.append(GpuProcess(pid=pid, used_memory=_used(member(process, "usedGpuMemory", where)), name=name))
    return tuple(found)


def _used(memory: int | Missing) -> int | Missing:
    """NVML_VALUE_NOT_AVAILABLE is all ones; the Python binding makes it None, an older one may not."""
    if memory == U64:
        return Missing(Gap.UNSUPPORTED, "usedGpuMemory", "not available")
    return memory
