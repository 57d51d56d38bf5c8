"""The reference machines with the NVLink graph of a box, or how it differs from the nearest."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.missing import Json, Missing
from dgxcheck.output.plain_text import visible
from dgxcheck.topology.model import Topology
from dgxcheck.topology.nvlinks import Graph, known_rows, nvlink_generation, nvlink_graph
from dgxcheck.topology.reference import PairDifference, matches, nearest, possible


def as_json(topology: Topology) -> dict[str, Json]:
    """The member ``nvlink_graph``: the reference machines with this graph, or the nearest one and the differences."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        may_be: list[Json] = [reference.name for reference in possible(known_rows(topology))]
        return {"nvlink_graph": None, "nvlink_graph_reason": graph.reason, "nvlink_graph_possible": may_be}
    generation = nvlink_generation(topology)
    equal: list[Json] = [reference.name for reference in matches(graph, generation)]
    near = nearest(graph, generation) if graph.pairs and not equal else None
    if near is None:
        return {"nvlink_graph": {"equals": equal, "nearest": None}}
    from dgxcheck.output.json_values import members

    pairs: list[Json] = [members(difference, "a b has expected") for difference in near.differences]
    member: Json = {"name": near.reference.name, "missing_gpus": near.missing_gpus, "differences": pairs}
    return {"nvlink_graph": {"equals": equal, "nearest": member}}


def text(topology: Topology) -> list[str]:
    """The reference graph it matches, or how it differs from the nearest; empty on a box without NVLink."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        return _possible(known_rows(topology))
    if not graph.pairs:
        return []
    generation = nvlink_generation(topology)
    if equal := matches(graph, generation):
        return [f"NVLink graph: matches {', '.join(reference.machines for reference in equal)} ({_links(graph)})."]
    near = nearest(graph, generation)
    if near is None:
        return [f"NVLink graph: matches no reference machine ({_links(graph)})."]
    gone = near.missing_gpus
    less = f", {gone} of its {near.reference.gpus} GPUs {'is' if gone == 1 else 'are'} missing" if gone else ""
    found = [f"  {visible(pair.a)} - {visible(pair.b)}: {_links_of(pair)}" for pair in near.differences]
    return [
        f"NVLink graph: differs from {near.reference.machines}{less}:",
        *(found or ["  all links between the present GPUs are up"]),
    ]


def _possible(rows: Sequence[Sequence[int | None]]) -> list[str]:
    """The reference machines that the known pairs match."""
    unknown = sum(count is None for row in rows for count in row) // 2
    if not any(count for row in rows for count in row):
        return []
    references = possible(rows)
    machines = f"{', '.join(reference.machines for reference in references)}" if references else "no reference machine"
    return [
        f"NVLink graph: {unknown} of {len(rows) * (len(rows) - 1) // 2} pairs are unknown; the others match {machines}."
    ]


def _links(graph: Graph) -> str:
    if graph.switched:
        return "through NVSwitches"
    total = sum(graph.pairs.values())
    return f"{total} {'link' if total == 1 else 'links'}"


def _links_of(pair: PairDifference) -> str:
    if not pair.expected:
        return f"NV{pair.has}, expected no NVLink"
    return f"{f'NV{pair.has}' if pair.has else 'no NVLink'} instead of NV{pair.expected}"
