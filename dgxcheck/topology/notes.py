"""Plain sentences about a topology: what is unknown and why, and where two sources of it disagree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from dgxcheck.facts.gpu import Nvml
from dgxcheck.facts.ids import DISPLAY, NVIDIA, NvmlReturn
from dgxcheck.facts.infiniband import IbDevice
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvlink import GpuPair, NvLink
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import fields
from dgxcheck.topology.model import Device, Link
from dgxcheck.topology.nvlinks import Count, End

ANCESTORS = {0: "PIX", 10: "PIX", 20: "PXB", 30: "PHB", 40: "NODE", 50: "SOC"}
"""``nvmlGpuTopologyLevel_t`` as nvidia-smi prints it; 0 is a board with two GPUs (K80)."""
NOT_ANSWERED = (Gap.TIMEOUT, Gap.LOST, Gap.GARBLED)
HINTS = {
    NvmlReturn.DRIVER_NOT_LOADED: "load the kernel module nvidia",
    NvmlReturn.LIBRARY_NOT_FOUND: "install the driver, or add the directory of its library to the loader's path",
    NvmlReturn.GPU_IS_LOST: "look for Xid 79 in the kernel log, then power-cycle the machine",
    NvmlReturn.LIB_RM_VERSION_MISMATCH: "unload the old nvidia modules and load the new ones, or reboot",
}
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
    if isinstance(nvml, Missing):
        if gpus:
            told = isinstance(nvlinks, Missing) and _why(nvlinks) == _why(nvml)  # by the headline
            yield f"GPU numbers are bus order: NVML gave none{'' if told else f' ({_why(nvml)})'}."
        elif nvml.gap not in (Gap.ABSENT, Gap.UNRECORDED):
            yield f"NVML did not answer ({_why(nvml)}): GPUs may be here that are not shown."
    if isinstance(functions, Missing):
        yield f"PCI paths are unknown ({_why(functions)})."
    if isinstance(ib, Missing) and ib.gap not in (Gap.ABSENT, Gap.UNASKED):
        yield f"InfiniBand devices are unknown ({_why(ib)})."
    if isinstance(nvml, Missing):
        return
    unlisted = [gpu.name for gpu in gpus if gpu.index is None]
    for lost in nvml.lost:
        who = f", probably {unlisted[0]}," if len(unlisted) == len(nvml.lost) == 1 else ""
        index = lost.where.rpartition(" ")[2]
        yield f"GPU {index} of NVML's count{who} gives no handle ({_why(lost)})."
    if not (unlisted and len(unlisted) == len(nvml.lost) == 1):
        yield from (f"{name} is on the PCI bus, but NVML does not list it." for name in unlisted)
    for gpu in gpus:
        if gpu.index is not None and gpu.function is None and not isinstance(functions, Missing):
            yield f"{gpu.name} ({gpu.bdf}) is listed by NVML, but is not on the PCI bus shown here."


def headline(nvlinks: tuple[NvLink, ...] | Missing, gpus: Sequence[Device]) -> str:
    """That no GPU's NVLinks are known, or nothing."""
    if not gpus or not isinstance(nvlinks, Missing):
        return ""
    return f"NVLink is unknown ({_why(nvlinks)}): PCI paths are shown."


def unclassed(functions: Iterable[PciFunction]) -> Iterator[str]:
    """Functions that may be GPUs, or may be none: their class or vendor cannot be read."""
    for function in functions:
        code = function.class_code
        if isinstance(code, Missing):
            if function.vendor == NVIDIA and function.bdf.endswith(".0"):
                yield f"{function.bdf} is shown as a GPU, but may be none: its class is not known ({code})."
        elif code >> 16 == DISPLAY and isinstance(function.vendor, Missing):
            yield f"{function.bdf} may be a GPU that is not shown: its vendor is not known ({function.vendor})."


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


def silent(nvml: Nvml | Missing, pairs: tuple[GpuPair, ...] | Missing) -> list[Missing]:
    """What the driver hung at, died at or gave no sense for; that a board cannot tell is an answer."""
    if isinstance(nvml, Missing):
        return []
    facts = [getattr(record, name) for record in (nvml, *nvml.gpus) for name in fields(record)]
    facts += [pair.common_ancestor for pair in ([] if isinstance(pairs, Missing) else pairs)]
    return [fact for fact in facts if isinstance(fact, Missing) and fact.gap in NOT_ANSWERED]


def unanswered(gaps: Iterable[Missing]) -> Iterator[str]:
    """One sentence per reason that a driver had for not answering."""
    asked: dict[str, list[str]] = {}
    for gap in gaps:
        asked.setdefault(str(gap), []).append(gap.where)
    for reason, where in asked.items():
        more = f" and {len(where) - 1} more" if len(where) > 1 else ""
        yield f"The driver did not answer {where[0]}{more} ({reason})."


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
    return f"{gap.where}: {gap}{_hint(gap)}"


def _hint(gap: Missing) -> str:
    """What to do about an error of NVML, where there is something to do."""
    hint = HINTS.get(gap.code) if gap.code is not None and gap.where.startswith("nvml") else None
    return f"; {hint}" if hint else ""
