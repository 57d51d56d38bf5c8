"""The NVLink graph: GPUs, and how many links join each pair."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from dgxcheck.facts.missing import Gap, Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Topology


class Graph(Record):
    """GPUs in their order, links per pair (``a`` before ``b``; a pair that is not there has none)."""

    names: tuple[str, ...]
    pairs: Mapping[tuple[str, str], int]
    switched: bool = False
    """True where links run through NVSwitches: then the count of a pair is not its own, every peer shares it."""

    def rows(self) -> list[list[int]]:
        """The symmetric matrix of counts."""
        place = {name: i for i, name in enumerate(self.names)}
        rows = [[0] * len(self.names) for _ in self.names]
        for (a, b), links in self.pairs.items():
            rows[place[a]][place[b]] = rows[place[b]][place[a]] = links
        return rows


def nvlink_graph(topology: Topology) -> Graph | Missing:
    """The graph of the GPUs that NVML lists and that have NVLinks at all, up or down (a display GPU has none)."""
    gpus = [gpu for gpu in topology.gpus if gpu.index is not None] or topology.gpus
    silent = [gpu.nvlink_positions for gpu in gpus if isinstance(gpu.nvlink_positions, Missing)]
    told = {link.nvlinks for link in topology.links if link.a.startswith("GPU") and link.b.startswith("GPU")}
    if silent and len(silent) == len(gpus) and told <= {None}:
        return silent[0]
    names = tuple(gpu.name for gpu in gpus if gpu.nvlink_positions != 0)
    pairs: dict[tuple[str, str], int] = {}
    switched = False
    matrix = topology.matrix()
    for a, b in combinations(names, 2):
        link = matrix[a, b]
        if link.nvlinks is None:
            known = silent[0] if silent else Missing(Gap.UNRECORDED, f"{a} {b}")
            return Missing(known.gap, known.where, link.nvlink_reason)
        switched = switched or link.switched
        if link.nvlinks:
            pairs[a, b] = link.nvlinks
    return Graph(names=names, pairs=pairs, switched=switched)


def nvlink_generation(topology: Topology) -> int | Missing:
    """Lowest generation among the links that are up."""
    found = [link.nvlink_generation for link in topology.links if link.nvlink_generation is not None]
    return min(found) if found else Missing(Gap.ABSENT, "nvmlDeviceGetNvLinkVersion", "no NVLink up says its version")


def known_rows(topology: Topology) -> list[list[int | None]]:
    """The symmetric matrix of counts of all GPUs, None for a pair of which nobody can tell."""
    names = [gpu.name for gpu in topology.gpus]
    matrix = topology.matrix()
    return [[0 if a == b else matrix[a, b].nvlinks for b in names] for a in names]
