"""Rings over the NVLinks of a box, and the reference machines that its NVLink graph equals."""

from __future__ import annotations

from dgxcheck.output.plain import lines, visible
from dgxcheck.output.topo_json import either
from dgxcheck.reading import Json, Missing
from dgxcheck.topology.graph import Graph, nvlink_generation, nvlink_graph
from dgxcheck.topology.model import Topology
from dgxcheck.topology.reference import Nearest, matches, nearest
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
    return lines([*said, *reference_lines(topology)])


def as_json(topology: Topology) -> dict[str, Json]:
    """The member ``rings`` of the JSON document."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        return {"rings": either("count", graph)}
    found: Rings = search(graph)
    member = either("count", found.count) | {"orders": [list(order) for order in found.orders], "how": found.how}
    return {"rings": member | either("collective_gb_per_second", collective_gbs(found, nvlink_generation(topology)))}


def reference_json(topology: Topology) -> dict[str, Json]:
    """The member ``nvlink_graph``: reference machines that it equals, or the nearest one and what differs."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        return {"nvlink_graph": None, "nvlink_graph_reason": str(graph)}
    generation = nvlink_generation(topology)
    equal: list[Json] = [reference.name for reference in matches(graph, generation)]
    near = nearest(graph, generation) if graph.pairs and not equal else None
    if near is None:
        return {"nvlink_graph": {"equals": equal, "nearest": None}}
    pairs: list[Json] = [{**difference._asdict()} for difference in near.differences]
    member: Json = {"name": near.reference.name, "missing_gpus": near.missing_gpus, "differences": pairs}
    return {"nvlink_graph": {"equals": equal, "nearest": member}}


def reference_lines(topology: Topology) -> list[str]:
    """Which reference graph this is, or how it differs from the nearest; nothing on a box without NVLink."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing) or not graph.pairs:
        return []
    generation = nvlink_generation(topology)
    if equal := matches(graph, generation):
        return [f"NVLink graph: that of {', '.join(reference.machines for reference in equal)} ({_links(graph)})."]
    near = nearest(graph, generation)
    if near is None:
        return [f"NVLink graph: no reference machine's ({_links(graph)})."]
    return [f"NVLink graph: differs from {near.reference.machines}{_less(near)}:", *_differences(near)]


def _links(graph: Graph) -> str:
    if graph.switched:
        return "through NVSwitches"
    total = sum(graph.pairs.values())
    return f"{total} {'link' if total == 1 else 'links'}"


def _less(near: Nearest) -> str:
    if not near.missing_gpus:
        return ""
    verb = "is" if near.missing_gpus == 1 else "are"
    return f", {near.missing_gpus} of its {near.reference.gpus} GPUs {verb} not here"


def _differences(near: Nearest) -> list[str]:
    if not near.differences:
        return ["  between the GPUs that are here every link is there"]
    return [
        f"  {visible(a)} - {visible(b)}: {f'NV{has}' if has else 'no NVLink'} instead of NV{due}"
        if due
        else f"  {visible(a)} - {visible(b)}: NV{has} where it has no NVLink"
        for a, b, has, due in near.differences
    ]
