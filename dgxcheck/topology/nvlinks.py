"""NVLinks between pairs of GPUs, from both of their ends and through NVSwitches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping

from dgxcheck.facts.ids import NVIDIA, OTHER_BRIDGE
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.nvlink import NvLink
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record

SWITCH = 2
"""``NVML_NVLINK_DEVICE_TYPE_SWITCH``"""
UNNAMED = "unnamed NVSwitch"
BASEBOARDS_GENERATION = 2
"""NVLink generation of the machines whose NVSwitches sit on two baseboards, DGX-2 and HGX-2."""


class End(Record, kw_only=False):
    """The NVLinks of one GPU as its own NVML handle reports them: links up, by the bdf of the peer."""

    gap: Missing | None
    """Why the counts are incomplete; None where every link answered."""
    positions: int
    gpus: Counter[str]
    switches: Counter[str]
    elsewhere: Counter[str]
    """Peers that are neither a listed GPU nor an NVSwitch: a hidden GPU, a CPU."""
    generations: dict[str, int]
    """Lowest generation of the links to a peer."""


class Count(Record, kw_only=False):
    """NVLinks up between two GPUs; None and a reason where unknown."""

    links: int | None
    reason: str = ""
    generation: int | None = None
    switched: bool = False
    note: str = ""


def unknown_end(gap: Missing) -> End:
    """The end of a GPU whose NVLinks could not be queried."""
    return End(gap, 0, Counter(), Counter(), Counter(), {})


def end(links: Iterable[NvLink], gpus: Collection[str], functions: Mapping[str, PciFunction]) -> End:
    """One GPU's end; a link position that the driver reports as unsupported does not exist on the board."""
    gap: Missing | None = None
    positions = 0
    peers: dict[str, Counter[str]] = {"gpu": Counter(), "switch": Counter(), "elsewhere": Counter()}
    generations: dict[str, int] = {}
    for link in links:
        if isinstance(link.up, Missing):
            if link.up.gap is not Gap.UNSUPPORTED:
                gap = link.up if gap is None else gap
            continue
        positions += 1
        if not link.up:
            continue
        if isinstance(peer := _peer(link, gpus, functions), Missing):
            gap = peer if gap is None else gap
            continue
        kind, bdf = peer
        peers[kind][bdf] += 1
        if isinstance(link.generation, int):
            generations[bdf] = min(link.generation, generations.get(bdf, link.generation))
    return End(gap, positions, peers["gpu"], peers["switch"], peers["elsewhere"], generations)


def _peer(link: NvLink, gpus: Collection[str], functions: Mapping[str, PciFunction]) -> tuple[str, str] | Missing:
    """Kind (``gpu``, ``switch``, ``elsewhere``) and bdf of the device at the far end of a link that is up.

    Drivers before R470 do not report the kind: it follows from the peer's PCI class. Some drivers, and those in virtual
    machines, report no bdf for an NVSwitch.
    """
    bdf, kind = link.remote_bdf, link.remote_type
    if isinstance(bdf, Missing):
        return ("switch", UNNAMED) if kind == SWITCH else bdf
    if bdf in gpus:
        return "gpu", bdf
    function = functions.get(bdf)
    switch = kind == SWITCH or (function is not None and is_nvswitch(function))
    return "switch" if switch else "elsewhere", bdf


def is_nvswitch(function: PciFunction) -> bool:
    """Is this PCI function an NVSwitch?"""
    bridge = isinstance(function.class_code, int) and function.class_code >> 8 == OTHER_BRIDGE
    return bridge and function.vendor == NVIDIA


def between(a: tuple[str, str, End], b: tuple[str, str, End]) -> Count:
    """Links up between two GPUs, each given as (name, bdf, end); the lower count where the ends disagree."""
    (name_a, bdf_a, end_a), (name_b, bdf_b, end_b) = a, b
    gaps = [(name, view.gap) for name, view in ((name_a, end_a), (name_b, end_b)) if view.gap is not None]
    switched = bool(end_a.switches or end_b.switches)
    if len(gaps) == 2 or (gaps and switched):
        name, gap = gaps[0]
        return Count(None, f"NVLinks of {name} unknown ({gap.where}: {gap})")
    counts = [view.gpus[peer] for peer, view in ((bdf_b, end_a), (bdf_a, end_b)) if view.gap is None]
    note = ""
    if len(set(counts)) > 1:
        note = (
            f"{name_a} reports {_links(counts[0])} up to {name_b}, {name_b} reports {_links(counts[1])} up to "
            f"{name_a}: using the lower count."
        )
    links = min(counts) + _through_switches(end_a, end_b)
    peers = {bdf_a, bdf_b, *end_a.switches, *end_b.switches}
    generations = [n for view in (end_a, end_b) for peer, n in view.generations.items() if peer in peers]
    return Count(links, "", min(generations, default=None) if links else None, switched, note)


def _through_switches(end_a: End, end_b: End) -> int:
    """Links that both have to the same switches; all of them where the driver does not identify its switches.

    Two GPUs without a common switch sit on the two baseboards of a DGX-2, whose switches are joined one to one by as
    many links as their GPUs bring: https://images.nvidia.com/content/pdf/nvswitch-technical-overview.pdf
    """
    a, b = end_a.switches, end_b.switches
    generations = {*end_a.generations.values(), *end_b.generations.values()}
    on_two_baseboards = generations <= {BASEBOARDS_GENERATION} and a.keys().isdisjoint(b)
    if UNNAMED in a or UNNAMED in b or on_two_baseboards:
        return min(a.total(), b.total())
    return sum(min(links, b[switch]) for switch, links in a.items())


def _links(count: int) -> str:
    return f"{count} link" if count == 1 else f"{count} links"
