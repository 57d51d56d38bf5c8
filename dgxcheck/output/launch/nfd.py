"""A feature file of Node Feature Discovery: the wiring as labels of a Kubernetes node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from dgxcheck.facts.missing import Missing
from dgxcheck.launch.placement import Placement
from dgxcheck.output.plain_text import lines
from dgxcheck.topology.graph import nvlink_generation, nvlink_graph
from dgxcheck.topology.model import Topology
from dgxcheck.topology.reference import matches

# in full: with the feature gate DisableAutoPrefix nfd-master drops names without a namespace
_NAME = "feature.node.kubernetes.io/dgxcheck"


def render(topology: Topology, placed: Sequence[Placement]) -> str:
    """``NAMESPACE/NAME=VALUE`` a line; what is not known has no line, and so the node no label.

    https://kubernetes-sigs.github.io/node-feature-discovery/stable/usage/customization-guide.html#feature-files
    """
    return lines([f"{_NAME}.{name}={value}" for name, value in _labels(topology, placed)])


def complete(topology: Topology) -> bool:
    """Is every label known?"""
    return not isinstance(nvlink_graph(topology), Missing)


def _labels(topology: Topology, placed: Sequence[Placement]) -> Iterator[tuple[str, str]]:
    if not placed:
        return
    yield "gpus", str(len(placed))
    yield "hca-ports", str(len({port for each in placed for port in each.ports}))
    graph = nvlink_graph(topology)
    if isinstance(graph, Missing):
        return
    equal = matches(graph, nvlink_generation(topology)) if graph.pairs else ()
    yield "nvlink-graph", equal[0].name if equal else "other" if graph.pairs else "none"
