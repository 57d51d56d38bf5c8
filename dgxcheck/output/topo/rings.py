"""Rings over the NVLinks of a box, and the collective bandwidth that they allow."""

from __future__ import annotations

from dgxcheck.bandwidth.links import collective_gbs
from dgxcheck.checks.engine.finding import counted
from dgxcheck.facts.missing import Json, Missing
from dgxcheck.output.json_values import either
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.output.topo import reference_graph
from dgxcheck.topology.model import Topology
from dgxcheck.topology.nvlinks import Rings, find_rings, nvlink_generation, nvlink_graph


def rings(topology: Topology) -> str:
    """The rings found and the collective bandwidth that they allow."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        return lines([f"NVLink is unknown ({visible(str(graph))}), so rings cannot be computed."])
    result = find_rings(graph)
    if isinstance(result.count, Missing):
        return lines([f"Rings: {visible(result.detail)}."])
    bandwidth = collective_gbs(result, nvlink_generation(topology))
    count = f"{counted(result.count, 'edge-disjoint ring')} over {len(graph.names)} GPUs"
    text = [f"{count}{f': {visible(result.detail)}' if result.detail else ''}"]
    text += [f"  {' - '.join(map(visible, (*order, order[0])))}" for order in result.orders]
    if result.count and isinstance(bandwidth, float):
        text.append(f"Collective bus bandwidth: at most {bandwidth:.0f} GB/s (rings x 2 directions x rate of one link)")
    elif result.count:
        text.append(f"Collective bus bandwidth unknown: {visible(str(bandwidth))}")
    return lines([*text, *reference_graph.text(topology)])


def as_json(topology: Topology) -> dict[str, Json]:
    """The member ``rings`` of the JSON document."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        return {"rings": either("count", graph)}
    result: Rings = find_rings(graph)
    member = either("count", result.count) | {"orders": [list(order) for order in result.orders], "how": result.how}
    return {"rings": member | either("collective_gb_per_second", collective_gbs(result, nvlink_generation(topology)))}
