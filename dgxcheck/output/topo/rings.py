"""Rings over the NVLinks of a box, and the collective bandwidth that they allow."""

from __future__ import annotations

from dgxcheck.facts.missing import Json, Missing
from dgxcheck.output.json_null import either
from dgxcheck.output.plain_text import lines, visible
from dgxcheck.output.topo import reference_graph
from dgxcheck.topology.graph import nvlink_generation, nvlink_graph
from dgxcheck.topology.model import Topology
from dgxcheck.topology.rings import Rings, collective_gbs, search


def rings(topology: Topology) -> str:
    """The rings found and the collective bandwidth that they allow."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        return lines([f"NVLink is unknown ({visible(str(graph))}), so no rings can be looked for."])
    found = search(graph)
    if isinstance(found.count, Missing):
        return lines([f"Rings: {visible(found.detail)}."])
    bandwidth = collective_gbs(found, nvlink_generation(topology))
    count = f"{found.count} edge-disjoint {'ring' if found.count == 1 else 'rings'} over {len(graph.names)} GPUs"
    said = [f"{count}{f': {visible(found.detail)}' if found.detail else ''}"]
    said += [f"  {' - '.join(map(visible, (*order, order[0])))}" for order in found.orders]
    if found.count and isinstance(bandwidth, float):
        how = "bus bandwidth: rings x 2 directions x rate of one link"
        said.append(f"Collective bandwidth at most {bandwidth:.0f} GB/s ({how})")
    elif found.count:
        said.append(f"Collective bandwidth not known: {visible(str(bandwidth))}")
    return lines([*said, *reference_graph.text(topology)])


def as_json(topology: Topology) -> dict[str, Json]:
    """The member ``rings`` of the JSON document."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        return {"rings": either("count", graph)}
    found: Rings = search(graph)
    member = either("count", found.count) | {"orders": [list(order) for order in found.orders], "how": found.how}
    return {"rings": member | either("collective_gb_per_second", collective_gbs(found, nvlink_generation(topology)))}
