"""NVLinks between pairs of GPUs, from both of their ends and through NVSwitches; the graph and rings that they form."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Literal

from dgxcheck.facts.ids import NVIDIA, OTHER_BRIDGE
from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.nvml.nvlink import NvLink
from dgxcheck.facts.pci import PciFunction
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Topology

MOST_LINKS = 18
"""NVLinks of one GPU (H100, B200; fewer on older ones). A row that adds up to more has NVSwitches in between."""
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
    return function.vendor == NVIDIA and function.subclass == OTHER_BRIDGE


def nvswitches(topology: Topology) -> list[PciFunction]:
    """Those that are on PCI."""
    return [function for function in topology.functions.values() if is_nvswitch(function)]


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


class Graph(Record):
    """GPUs in their order, and NVLinks up per pair (``a`` before ``b``; absent pairs have 0)."""

    names: tuple[str, ...]
    pairs: Mapping[tuple[str, str], int]
    switched: bool = False
    """Links run through NVSwitches: a pair's count is not exclusive, all peers share the same links."""

    def rows(self) -> list[list[int]]:
        """The symmetric matrix of counts."""
        place = {name: i for i, name in enumerate(self.names)}
        rows = [[0] * len(self.names) for _ in self.names]
        for (a, b), links in self.pairs.items():
            rows[place[a]][place[b]] = rows[place[b]][place[a]] = links
        return rows


def nvlink_graph(topology: Topology) -> Graph | Missing:
    """The graph of the GPUs that NVML lists and that have NVLinks, up or down (a display GPU has none); Missing if a
    pair's count is unknown."""
    gpus = [gpu for gpu in topology.gpus if gpu.index is not None] or topology.gpus
    gaps = [gpu.nvlink_positions for gpu in gpus if isinstance(gpu.nvlink_positions, Missing)]
    given = any(link.nvlinks is not None for link in topology.links.given if link.b.startswith("GPU"))
    if gaps and len(gaps) == len(gpus) and not given:
        return gaps[0]
    names = tuple(gpu.name for gpu in gpus if gpu.nvlink_positions != 0)
    pairs: dict[tuple[str, str], int] = {}
    switched = False
    for a, b in combinations(names, 2):
        link = topology.links[a, b]
        if link.nvlinks is None:
            gap = gaps[0] if gaps else Missing(Gap.UNRECORDED, f"{a} {b}")
            return Missing(gap.gap, gap.where, link.nvlink_reason)
        switched = switched or link.switched
        if link.nvlinks:
            pairs[a, b] = link.nvlinks
    return Graph(names=names, pairs=pairs, switched=switched)


def nvlink_generation(topology: Topology) -> int | Missing:
    """Lowest generation among the links that are up."""
    generations = [link.nvlink_generation for link in topology.nvlinked() if link.nvlink_generation is not None]
    none = Missing(Gap.ABSENT, "nvmlDeviceGetNvLinkVersion", "no NVLink reports its version")
    return min(generations, default=none)


def known_rows(topology: Topology) -> list[list[int | None]]:
    """The symmetric matrix of counts of all GPUs; None for a pair whose count is unknown."""
    names = [gpu.name for gpu in topology.gpus]
    return [[0 if a == b else topology.links[a, b].nvlinks for b in names] for a in names]


MOST_GPUS = 10
MOST_STEPS = 200_000
"""Extensions of a path before the search gives up: about a second. Boxes that exist need a few thousand at most."""


class Rings(Record):
    """Edge-disjoint rings over all GPUs of a graph."""

    count: int | Missing
    orders: tuple[tuple[str, ...], ...]
    """GPUs of each ring in order, starting at the first GPU; empty through switches, where any order will do."""
    how: Literal["exhaustive", "switched", "not searched"]
    detail: str


def find_rings(graph: Graph, most_steps: int = MOST_STEPS) -> Rings:
    """The largest set of rings; among equals the first in GPU order, so the result is deterministic."""
    gpus = len(graph.names)
    if graph.switched:
        links = min((graph.pairs.get(pair, 0) for pair in combinations(graph.names, 2)), default=0)
        return Rings(count=links // 2, orders=(), how="switched", detail="through NVSwitches, any order of the GPUs")
    if gpus < 2:
        return Rings(count=0, orders=(), how="exhaustive", detail="fewer than two GPUs with NVLink")
    if gpus > MOST_GPUS:
        return _not_searched(f"not searched beyond {MOST_GPUS} GPUs")
    rows = graph.rows()
    most = min(sum(row) for row in rows) // 2
    budget = [most_steps]
    for wanted in range(most, 0, -1):
        if (rings := _pack(rows, wanted, (), budget)) is not None:
            orders = tuple(tuple(graph.names[i] for i in ring) for ring in rings)
            return Rings(count=wanted, orders=orders, how="exhaustive", detail="")
        if budget[0] <= 0:
            return _not_searched("search aborted: too many candidate rings")
    return Rings(count=0, orders=(), how="exhaustive", detail=_reason(graph, rows))


def _not_searched(why: str) -> Rings:
    return Rings(count=Missing(Gap.UNSUPPORTED, "NVLink rings", why), orders=(), how="not searched", detail=why)


def _reason(graph: Graph, rows: list[list[int]]) -> str:
    underlinked = [name for name, row in zip(graph.names, rows, strict=True) if sum(row) < 2]
    return f"fewer than two NVLinks up: {', '.join(underlinked)}" if underlinked else "no ring visits every GPU"


def _pack(
    rows: list[list[int]], wanted: int, least: tuple[int, ...], budget: list[int]
) -> tuple[tuple[int, ...], ...] | None:
    """``wanted`` disjoint rings in ascending order, the first not before ``least``; None if there are none.

    Each GPU has two links for each of them at least.
    """
    if not wanted:
        return ()
    for ring in _rings(rows, least, budget):
        _take(rows, ring, -1)
        rest = _pack(rows, wanted - 1, ring, budget)
        _take(rows, ring, 1)
        if rest is not None:
            return (ring, *rest)
    return None


def _take(rows: list[list[int]], ring: tuple[int, ...], links: int) -> None:
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        rows[a][b] += links
        rows[b][a] += links


def _rings(rows: list[list[int]], least: tuple[int, ...], budget: list[int]) -> Iterator[tuple[int, ...]]:
    """Hamiltonian cycles from GPU 0 in lexicographic order, each in one of its two directions, from ``least`` on."""
    gpus = len(rows)
    if gpus == 2:
        yield (0, 1)
        return
    path = [0]

    def extend(bounded: bool) -> Iterator[tuple[int, ...]]:
        budget[0] -= 1
        if budget[0] <= 0:
            return
        if len(path) == gpus:
            if rows[path[-1]][0] and path[1] < path[-1]:
                yield tuple(path)
            return
        floor = least[len(path)] if bounded else 1
        for gpu in range(max(floor, 1), gpus):
            if gpu not in path and rows[path[-1]][gpu]:
                path.append(gpu)
                yield from extend(bounded and gpu == floor)
                path.pop()

    yield from extend(bool(least))
