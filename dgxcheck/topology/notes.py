"""Plain sentences about a topology: what is unknown and why, and where two sources of it disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.nvlink import GpuPair, NvLink
from dgxcheck.facts.pci import PciFunction
from dgxcheck.reading import Gap, Missing
from dgxcheck.topology.model import Device, Link
from dgxcheck.topology.nvlinks import Count, End

ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SOC"}
"""``nvmlGpuTopologyLevel_t`` as nvidia-smi prints it; 0 is a board with two GPUs (K80)."""
VIRTUAL_BRIDGES = {0x1B36, 0x15AD}
"""PCI vendors of QEMU's and VMware's root ports."""


def sources(
    functions: tuple[PciFunction, ...] | Missing,
    ib: tuple[IbDevice, ...] | Missing,
    nvml: Nvml | Missing,
    nvlinks: tuple[NvLink, ...] | Missing,
    gpus: Sequence[Device],
) -> Iterator[str]:
    """Sources that did not answer, and GPUs that only one of PCI and NVML shows."""
    if gpus and isinstance(nvlinks, Missing):
        yield f"NVLink is unknown ({_why(nvlinks)}): PCI paths are shown."
    if gpus and isinstance(nvml, Missing):
        yield f"GPU numbers are bus order: NVML is not there ({_why(nvml)})."
    if isinstance(functions, Missing):
        yield f"PCI paths are unknown ({_why(functions)})."
    if isinstance(ib, Missing) and ib.gap not in (Gap.ABSENT, Gap.UNASKED):
        yield f"InfiniBand devices are unknown ({_why(ib)})."
    if isinstance(nvml, Missing):
        return
    for lost in nvml.lost:
        yield f"NVML counts a GPU that it gives no handle for ({_why(lost)})."
    for gpu in gpus:
        if gpu.index is None:
            yield f"{gpu.name} is on the PCI bus, but NVML does not list it."
        elif gpu.function is None and not isinstance(functions, Missing):
            yield f"{gpu.name} ({gpu.bdf}) is listed by NVML, but is not on the PCI bus shown here."


def nvlink_ends(
    gpus: Sequence[Device],
    ends: Mapping[str, End],
    counts: Iterable[Count],
    nvlinks: tuple[NvLink, ...] | Missing,
) -> Iterator[str]:
    """GPUs whose NVLinks did not all answer or lead out of the box shown, and pairs whose two ends disagree."""
    if isinstance(nvlinks, Missing):
        return
    for gpu in gpus:
        view = ends[gpu.name]
        if view.gap is not None and gpu.index is not None:
            yield f"NVLinks of {gpu.name} are not all known ({_why(view.gap)})."
        for peer, links in sorted(view.elsewhere.items()):
            yield f"{gpu.name} has NVLinks up to {peer}, which is no GPU or NVSwitch shown here: {links}."
    yield from (count.note for count in counts if count.note)


def ancestors(gpus: Sequence[Device], links: Sequence[Link], pairs: tuple[GpuPair, ...] | Missing) -> Iterator[str]:
    """GPU pairs for which ``nvmlDeviceGetTopologyCommonAncestor`` and the PCI tree differ, by what they say."""
    if isinstance(pairs, Missing):
        return
    names = {gpu.bdf: gpu.name for gpu in gpus}
    by_ends = {frozenset((link.a, link.b)): link for link in links}
    differing: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        link = by_ends.get(frozenset((names.get(pair.a, ""), names.get(pair.b, ""))))
        if link is None or isinstance(pair.common_ancestor, Missing):
            continue
        said = ANCESTORS.get(pair.common_ancestor, f"level {pair.common_ancestor}")
        if said != link.pci:
            differing.setdefault((said, link.pci or "not known"), []).append(f"{link.a}-{link.b}")
    for (said, found), ends in differing.items():
        yield f"NVML's common ancestor is {said} where the PCI tree says {found}: {', '.join(ends)}."


def virtual(gpus: Sequence[Device], functions: Mapping[str, PciFunction]) -> Iterator[str]:
    """A PCI tree as hypervisors show it: no bridge above any GPU, or a hypervisor's own bridges."""
    paths = [gpu.path for gpu in gpus if not isinstance(gpu.path, Missing)]
    if len(paths) < 2:
        return
    if all(len(path) == 2 for path in paths):
        yield "No GPU has a bridge above it, as in a virtual machine: the switches of the host are not visible."
        return
    bridges = [functions[bdf] for path in paths for bdf in path[1:-1] if bdf in functions]
    if any(bridge.vendor in VIRTUAL_BRIDGES for bridge in bridges):
        yield "The bridges above the GPUs are a hypervisor's: the switches of the host are not visible."


def _why(gap: Missing) -> str:
    return f"{gap.where}: {gap}"
