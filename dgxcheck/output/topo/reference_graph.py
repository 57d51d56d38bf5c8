"""The reference machines that the NVLink graph of a box equals, or how it differs from the nearest."""

from __future__ import annotations

from collections.abc import Sequence

from dgxcheck.facts.missing import Json, Missing
from dgxcheck.output.plain_text import visible
from dgxcheck.topology.graph import Graph, known_rows, nvlink_generation, nvlink_graph
from dgxcheck.topology.model import Topology
from dgxcheck.topology.reference import Nearest, matches, nearest, possible


def as_json(topology: Topology) -> dict[str, Json]:
    """The member ``nvlink_graph``: reference machines that it equals, or the nearest one and what differs."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        may_be: list[Json] = [reference.name for reference in possible(known_rows(topology))]
        return {"nvlink_graph": None, "nvlink_graph_reason": graph.reason, "nvlink_graph_possible": may_be}
    generation = nvlink_generation(topology)
    equal: list[Json] = [reference.name for reference in matches(graph, generation)]
    near = nearest(graph, generation) if graph.pairs and not equal else None
    if near is None:
        return {"nvlink_graph": {"equals": equal, "nearest": None}}
    pairs: list[Json] = [{"a": it.a, "b": it.b, "has": it.has, "expected": it.expected} for it in near.differences]
    member: Json = {"name": near.reference.name, "missing_gpus": near.missing_gpus, "differences": pairs}
    return {"nvlink_graph": {"equals": equal, "nearest": member}}


def text(topology: Topology) -> list[str]:
    """Which reference graph this is, or how it differs from the nearest; nothing on a box without NVLink."""
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        return _possible(known_rows(topology))
    if not graph.pairs:
        return []
    generation = nvlink_generation(topology)
    if equal := matches(graph, generation):
        return [f"NVLink graph: that of {', '.join(reference.machines for reference in equal)} ({_links(graph)})."]
    near = nearest(graph, generation)
    if near is None:
        return [f"NVLink graph: no reference machine's ({_links(graph)})."]
    return [f"NVLink graph: differs from {near.reference.machines}{_less(near)}:", *_differences(near)]


def _possible(rows: Sequence[Sequence[int | None]]) -> list[str]:
    """That what is known of a graph is as in some machine, or in none."""
    unknown = sum(count is None for row in rows for count in row) // 2
    if not any(count for row in rows for count in row):
        return []
    found = possible(rows)
    machines = f"as in {', '.join(reference.machines for reference in found)}" if found else "no reference machine's"
    return [
        f"NVLink graph: {unknown} of {len(rows) * (len(rows) - 1) // 2} pairs are not known; the rest is {machines}."
    ]


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
        f"  {visible(it.a)} - {visible(it.b)}: {f'NV{it.has}' if it.has else 'no NVLink'} instead of NV{it.expected}"
        if it.expected
        else f"  {visible(it.a)} - {visible(it.b)}: NV{it.has} where it has no NVLink"
        for it in near.differences
    ]
