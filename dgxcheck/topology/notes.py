"""Notes on a topology: what is unknown and why, and where two sources disagree. Each note is one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from dgxcheck.facts.ids import DISPLAY, NVIDIA, NvmlReturn
from dgxcheck.facts.missing import NOT_LOADABLE, Gap, Missing
from dgxcheck.facts.nvml.gpu import Fabric, GpuModes, Nvml
from dgxcheck.facts.nvml.nvlink import GpuPair, NvLink
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import fields
from dgxcheck.facts.tool_outputs import NvidiaSmiTopo
from dgxcheck.facts.typical import gathered
from dgxcheck.topology.model import Device, Links
from dgxcheck.topology.nvlinks import Count, End
from dgxcheck.topology.paths import data_ends, is_virtual

if TYPE_CHECKING:
    from dgxcheck.survey import Snapshot

ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SOC"}
"""``nvmlGpuTopologyLevel_t`` to nvidia-smi's label; 0 is ``NVML_TOPOLOGY_INTERNAL``, one board with two GPUs (K80)."""
NOT_ANSWERED = (Gap.TIMEOUT, Gap.LOST, Gap.GARBLED)
HINTS = {
    NvmlReturn.DRIVER_NOT_LOADED: "load the kernel module nvidia",
    NOT_LOADABLE: "check LD_LIBRARY_PATH and ldconfig -p, or reinstall the driver's libraries",
    NvmlReturn.LIBRARY_NOT_FOUND: "install the driver, or add its library directory to the loader path",
    NvmlReturn.GPU_IS_LOST: "check the kernel log for Xid 79, then power-cycle the machine",
    NvmlReturn.LIB_RM_VERSION_MISMATCH: "reload the nvidia kernel modules, or reboot",
}


def sources(facts: Snapshot, nvml: Nvml | Missing, gpus: Sequence[Device]) -> Iterator[str]:
    """Sources that did not answer, and GPUs that only one of PCI and NVML lists."""
    functions, ib, nvlinks = facts.pci, facts.infiniband, facts.nvlink
    if isinstance(nvml, Missing):
        if gpus:
            in_headline = isinstance(nvlinks, Missing) and _why(nvlinks) == _why(nvml)
            yield f"GPUs are numbered in bus order: NVML gave no indexes{'' if in_headline else f' ({_why(nvml)})'}."
        elif nvml.gap not in (Gap.ABSENT, Gap.UNRECORDED):
            yield f"NVML did not answer ({_why(nvml)}): some GPUs may not be listed."
    if isinstance(functions, Missing):
        yield f"PCI paths are unknown ({_why(functions)})."
    if isinstance(ib, Missing) and ib.gap not in (Gap.ABSENT, Gap.UNASKED):
        yield f"InfiniBand devices are unknown ({_why(ib)})."
    if isinstance(nvml, Missing):
        return
    unlisted = [gpu.name for gpu in gpus if gpu.index is None]
    numberless = [gpu.name for gpu in gpus if isinstance(gpu.index, Missing)]
    not_shown = [_index(gap) for gap in nvml.lost if gap.gap is Gap.UNASKED]
    failed = [gap for gap in nvml.lost if gap.gap is not Gap.UNASKED]
    if numberless and nvml.count != len(nvml.gpus):
        yield f"The text shows {len(nvml.gpus)} of {nvml.count} GPUs and not the number of {', '.join(numberless)}."
    elif not_shown and not numberless:
        yield f"Not shown by any output: GPU{', GPU'.join(not_shown)}."
    for lost in failed:
        name = f" (probably {unlisted[0]})" if len(unlisted) == len(failed) == 1 else ""
        yield f"NVML enumerates GPU {_index(lost)}{name} but cannot open it ({_why(lost)})."
    if not (unlisted and len(unlisted) == len(failed) == 1):
        yield from (f"{name} is on the PCI bus but not listed by NVML." for name in unlisted)
    for gpu in gpus:
        if gpu.index is not None and gpu.function is None and not isinstance(functions, Missing):
            yield f"{gpu.name} ({gpu.bdf}) is listed by NVML but missing from the PCI bus."


def _index(gap: Missing) -> str:
    """NVML's number of a GPU that did not open."""
    return gap.where.rpartition(" ")[2]


def headline(nvlinks: tuple[NvLink, ...] | Missing, gpus: Sequence[Device]) -> str:
    """``NVLink is unknown (..)`` where no GPU's NVLinks could be read; else empty."""
    if not gpus or not isinstance(nvlinks, Missing):
        return ""
    return f"NVLink is unknown ({_why(nvlinks)}): showing PCI paths."


def unknown_class(functions: Iterable[PciFunction]) -> Iterator[str]:
    """Functions that may or may not be GPUs: their PCI class or vendor cannot be read."""
    for function in functions:
        if isinstance(code := function.class_code, Missing):
            if function.vendor == NVIDIA and function.bdf.endswith(".0"):
                yield f"{function.bdf} is shown as a GPU but may not be one: its PCI class is unknown ({code})."
        elif code >> 16 == DISPLAY and isinstance(function.vendor, Missing):
            yield f"{function.bdf} is not shown but may be a GPU: its PCI vendor is unknown ({function.vendor})."


def nvlink_ends(
    gpus: Sequence[Device], ends: Mapping[str, End], counts: Iterable[Count], nvlinks: tuple[NvLink, ...] | Missing,
    stated: NvidiaSmiTopo | Missing,
) -> Iterator[str]:  # fmt: skip
    """NVLinks that did not answer or lead to an unlisted device, and pairs of GPUs whose two ends disagree.

    What NVML was not asked, a ``stated`` matrix may tell.
    """
    reason = Gap.UNRECORDED if not isinstance(stated, Missing) and stated.labels else None
    if isinstance(nvlinks, Missing):
        return
    for gpu in gpus:
        view = ends[gpu.name]
        if view.gap is not None and gpu.index is not None and view.gap.gap is not reason:
            yield f"Some NVLinks of {gpu.name} are unknown ({_why(view.gap)})."
        for peer, links in sorted(view.elsewhere.items()):
            count = f"{links} NVLink{'' if links == 1 else 's'}"
            yield f"{gpu.name} has {count} up to {peer}, which is neither a GPU nor an NVSwitch listed here."
    yield from (count.note for count in counts if count.note)


def ancestors(gpus: Sequence[Device], links: Links, pairs: tuple[GpuPair, ...] | Missing) -> Iterator[str]:
    """GPU pairs for which ``nvmlDeviceGetTopologyCommonAncestor`` and the PCI tree differ, by their two labels."""
    if isinstance(pairs, Missing):
        return
    names = {gpu.bdf: gpu.name for gpu in gpus}
    differing: dict[tuple[str, str], list[str]] = {}
    for pair in pairs:
        if pair.a == pair.b or not {pair.a, pair.b} <= names.keys() or isinstance(pair.common_ancestor, Missing):
            continue
        link = links[names[pair.a], names[pair.b]]
        level = ANCESTORS.get(pair.common_ancestor, f"level {pair.common_ancestor}")
        if level != link.pci:
            differing.setdefault((level, link.pci or "nothing"), []).append(f"{link.a}-{link.b}")
    for (level, pci), ends in differing.items():
        yield f"NVML reports common ancestor {level}, the PCI tree shows {pci}: {', '.join(ends)}."


def nvlink_domains(gpus: Sequence[Device], modes: Sequence[GpuModes]) -> Iterator[str]:
    """Domains that may reach beyond the machine: what a tray knows of its rack."""
    names = {gpu.bdf: gpu.name for gpu in gpus}
    members = gathered(((row.fabric.domain, row.fabric.clique_id), names[row.bdf]) for row in modes
                       if isinstance(row.fabric, Fabric) and row.fabric.domain and row.bdf in names)  # fmt: skip
    for (domain, clique), those in members.items():
        yield f"NVLink domain {domain}, clique {clique}: {', '.join(those)}."


def printed_otherwise(gpus: Sequence[Device], nics: Sequence[Device]) -> Iterator[str]:
    """Where the matrix, as nvidia-smi prints it, does not show the way that data takes."""
    for nic in nics:
        for gpu in gpus:
            if nic.dma is not None and data_ends(gpu, nic)[1] is not nic:
                yield f"{nic.name} sends data of {gpu.name} through its DMA function {nic.dma.bdf} beside it."
    if nics and any(isinstance(gpu.gpu_numa_id, int) for gpu in gpus):
        yield "From GPUs whose memory is a NUMA node, SOC (SYS) stands for every NIC; topo --path shows the way."


def unanswered(nvml: Nvml | Missing, pairs: tuple[GpuPair, ...] | Missing) -> list[Missing]:
    """NVML queries that timed out, lost the GPU or returned garbage; ``unsupported`` is an answer."""
    if isinstance(nvml, Missing):
        return []
    facts = [getattr(record, name) for record in (nvml, *nvml.gpus) for name in fields(record)]
    facts += [pair.common_ancestor for pair in ([] if isinstance(pairs, Missing) else pairs)]
    return [fact for fact in facts if isinstance(fact, Missing) and fact.gap in NOT_ANSWERED]


def unanswered_queries(gaps: Iterable[Missing]) -> Iterator[str]:
    """One sentence per reason for not answering."""
    queries = gathered((str(gap), gap.where) for gap in gaps)
    for reason, where in queries.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        yield f"The driver did not answer {where[0]}{more} ({reason})."


def virtual(gpus: Sequence[Device], functions: Mapping[str, PciFunction]) -> Iterator[str]:
    """A virtual PCI tree: no bridge above any GPU, or bridges emulated by a hypervisor."""
    paths = [gpu.path for gpu in gpus if not isinstance(gpu.path, Missing)]
    if len(paths) < 2:
        return
    if all(len(path) == 2 for path in paths):
        yield "No GPU has a bridge above it, as in a virtual machine: the host's PCIe switches are not visible."
        return
    bridges = [functions[bdf] for path in paths for bdf in path[1:-1] if bdf in functions]
    if any(is_virtual(bridge) for bridge in bridges):
        yield "The bridges above the GPUs belong to a hypervisor: the host's PCIe switches are not visible."


def _why(gap: Missing) -> str:
    """Where and why, and the remedy for an NVML error."""
    hint = HINTS.get(gap.code) if gap.code is not None and gap.where.startswith("nvml") else None
    return f"{gap.where}: {gap}{f'; {hint}' if hint else ''}"
