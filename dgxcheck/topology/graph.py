"""The NVLink graph: GPUs, and how many links join each pair."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Topology


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
    matrix = topology.matrix()
    for a, b in combinations(names, 2):
        link = matrix[a, b]
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
    return (
        min(generations)
        if generations
        else Missing(Gap.ABSENT, "nvmlDeviceGetNvLinkVersion", "no NVLink reports its version")
    )


def known_rows(topology: Topology) -> list[list[int | None]]:
    """The symmetric matrix of counts of all GPUs; None for a pair whose count is unknown."""
    names = [gpu.name for gpu in topology.gpus]
    matrix = topology.matrix()
    return [[0 if a == b else matrix[a, b].nvlinks for b in names] for a in names]
