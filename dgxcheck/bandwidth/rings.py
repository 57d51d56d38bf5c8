"""What collectives can reach over the rings of NVLinks."""

from __future__ import annotations

from dgxcheck.bandwidth.links import NVLINK_SHARE
from dgxcheck.facts.missing import Missing
from dgxcheck.topology.graph import nvlink_generation, nvlink_graph
from dgxcheck.topology.model import Topology
from dgxcheck.topology.rates import nvlink_gbs
from dgxcheck.topology.rings import Rings, search


def collective_gbs(rings: Rings, generation: int | Missing) -> float | Missing:
    """Upper bound of a collective's bus bandwidth in GB/s (1e9): rings x 2 directions x line rate of one link."""
    if isinstance(rings.count, Missing):
        return rings.count
    if isinstance(generation, Missing):
        return generation
    rate = nvlink_gbs(generation)
    return rate if isinstance(rate, Missing) else rings.count * 2 * rate


def copies_gbs(topology: Topology, rings_used: int, both_ways: bool) -> float | None:
    """What copies around so many rings should reach together; None where the rings or their rate are unknown.

    Through NVSwitches one order of the GPUs has all the links; elsewhere each ring has its own.
    """
    graph, generation = nvlink_graph(topology), nvlink_generation(topology)
    if isinstance(graph, Missing) or isinstance(generation, Missing) or generation not in NVLINK_SHARE:
        return None
    rings = search(graph)
    most = collective_gbs(rings, generation)
    if isinstance(most, Missing) or isinstance(rings.count, Missing) or not most:
        return None
    share = 1.0 if rings.how == "switched" else min(1.0, rings_used / rings.count)
    return most * share * (1.0 if both_ways else 0.5) * NVLINK_SHARE[generation][0]
