"""The CPUs and memory near a GPU, as the driver tells them."""

from __future__ import annotations

from itertools import groupby

from dgxcheck.facts.cpulist import cpulist
from dgxcheck.facts.gpu import GpuAffinity
from dgxcheck.facts.missing import Gap, Missing, question
from dgxcheck.source.protocol import Source
from probes.gpu.listing import per_gpu
from probes.gpu.values import garbled, numbers

MAX_WORDS = 1024  # 65536 CPUs, eight times what the kernel can be built for


def probe(source: Source) -> tuple[GpuAffinity, ...] | Missing:
    """``nvmlDeviceGetCpuAffinity`` and ``nvmlDeviceGetMemoryAffinity`` (scope: node) of every GPU."""
    return per_gpu(source, _affinity)


def members_of(words: tuple[int, ...]) -> tuple[int, ...]:
    """Numbers of the bits that are set, over 64-bit words, lowest first."""
    return tuple(64 * place + bit for place, word in enumerate(words) for bit in range(64) if word >> bit & 1)


def runs_of(numbers: tuple[int, ...]) -> tuple[range, ...]:
    """Ascending numbers as runs of successive ones."""
    runs = ([n for _, n in run] for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]))
    return tuple(range(run[0], run[-1] + 1) for run in runs)


def _affinity(source: Source, bdf: str) -> GpuAffinity:
    cpus = _mask(source, "nvmlDeviceGetCpuAffinity", bdf)
    return GpuAffinity(
        bdf=bdf,
        cpulist=cpus if isinstance(cpus, Missing) else cpulist(runs_of(cpus)),
        memory_nodes=_mask(source, "nvmlDeviceGetMemoryAffinity", bdf, 0),
    )


def _mask(source: Source, function: str, bdf: str, *args: int) -> tuple[int, ...] | Missing:
    """An empty mask is what a virtual machine without NUMA information gives."""
    words, where = numbers(source, function, bdf, *args), question(function, bdf, *args)
    if isinstance(words, Missing):
        return words
    if len(words) > MAX_WORDS:
        return garbled(where, list(words))
    return members_of(words) or Missing(Gap.UNSUPPORTED, where, "an empty mask")
