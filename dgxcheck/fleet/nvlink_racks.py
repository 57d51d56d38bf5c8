"""Trays joined to racks by their NVLink domain, and the tray, GPU or switch plane that differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Literal

from dgxcheck.facts.record import Record
from dgxcheck.facts.typical import gathered
from dgxcheck.fleet.device_counts import rare
from dgxcheck.fleet.node import GpuLinks, Node

Culprit = Literal["plane", "tray", "gpu"]
OUTSIDE = "outside"
"""The key of trays whose GPUs are in no domain, or in several."""


class Difference(Record, kw_only=False):
    """What is not as in the rest of the rack; a plane has no node, a tray no GPU."""

    culprit: Culprit
    node: str = ""
    gpu: str = ""
    links: tuple[int, ...] = ()
    """Those that are down."""
    domains: tuple[str, ...] = ()
    """Of a tray that is in another number of domains than one, or in one that few of its cluster are in."""
    gpus: int = 0
    """Of a tray with another number of GPUs than most; at which a plane's link is down."""


class Rack(Record, kw_only=False):
    """The machines of one NVLink domain."""

    domain: str
    """``CLUSTER_UUID.CLIQUE``"""
    trays: Mapping[str, Mapping[str, GpuLinks]]
    """NVLinks by GPU, by node."""
    differences: tuple[Difference, ...]
    """Planes first, then trays, then GPUs: each link that is down once."""

    @property
    def gpus(self) -> int:
        return sum(map(len, self.trays.values()))

    def links_between(self, a: str, b: str) -> tuple[int, int] | None:
        """The least and the most NVLinks that a GPU of one tray has to one of the other; None where there is no pair.

        Through NVSwitches two GPUs have as many as the one that has fewer up; within a tray it is between its own.
        """
        ours, theirs = ([links.up for links in self.trays[name].values()] for name in (a, b))
        if not ours or not theirs or (a == b and len(ours) < 2):
            return None
        if a == b:
            ordered = sorted(ours)
            return ordered[0], ordered[-2]
        return min(*ours, *theirs), min(max(ours), max(theirs))


def racks(nodes: Mapping[str, Node]) -> tuple[Rack, ...]:
    """One per NVLink domain that several machines can share; then, as ``outside``, trays of the same models that are
    in no domain or in several."""
    trays = {name: node.newest for name, node in nodes.items() if len(node.newest.nvlink_domains) == 1}
    models = {result.group.gpus.partition(" x ")[2] for result in trays.values()} - {""}
    found: dict[str, dict[str, Mapping[str, GpuLinks]]] = {}
    for name, result in trays.items():
        found.setdefault(result.nvlink_domains[0], {})[name] = result.nvlinks
    lost = {
        name: node.newest
        for name, node in nodes.items()
        if name not in trays and (node.newest.nvlink_domains or node.newest.group.gpus.partition(" x ")[2] in models)
    }
    few = apart(nodes)
    joined = [Rack(domain, its, (
        *_differences(its), *(Difference("tray", node=name, domains=(domain,)) for name in its if name in few)
    )) for domain, its in sorted(found.items())]  # fmt: skip
    outside = Rack(OUTSIDE, {name: result.nvlinks for name, result in lost.items()}, tuple(
        Difference("tray", node=name, domains=result.nvlink_domains) for name, result in lost.items()
    ))  # fmt: skip
    return (*joined, *([outside] if lost else []))


def apart(nodes: Mapping[str, Node]) -> frozenset[str]:
    """Those in a clique that few trays of their cluster UUID have: they reach no other over NVLink."""
    clusters: dict[str, dict[str, list[str]]] = {}
    for name, node in nodes.items():
        for domain in node.newest.nvlink_domains[:1]:
            clusters.setdefault(domain.rpartition(".")[0], {}).setdefault(domain, []).append(name)
    return frozenset(chain(*map(rare, clusters.values())))


def _differences(trays: Mapping[str, Mapping[str, GpuLinks]]) -> Iterator[Difference]:
    planes = _planes(trays)
    alike = gathered((count, link) for link, count in planes.items())
    yield from (Difference("plane", links=tuple(links), gpus=count) for count, links in alike.items())
    sizes = Counter(map(len, trays.values()))
    usual = max(sizes, key=lambda size: (sizes[size], size))
    for name, gpus in trays.items():
        if len(gpus) != usual:
            yield Difference("tray", node=name, gpus=len(gpus))
        left = {gpu: tuple(link for link in links.down if link not in planes) for gpu, links in gpus.items()}
        # links that are down at every GPU of a tray with several
        shared = tuple(sorted(set.intersection(*map(set, left.values())))) if len(left) > 1 else ()
        if shared:
            yield Difference("tray", node=name, links=shared)
        for gpu, links in left.items():
            if own := tuple(link for link in links if link not in shared):
                yield Difference("gpu", node=name, gpu=gpu, links=own)


def _planes(trays: Mapping[str, Mapping[str, GpuLinks]]) -> Mapping[int, int]:
    """Link positions that are down at most GPUs of the rack, and at how many: each leads to one switch chip."""
    down = Counter(link for gpus in trays.values() for links in gpus.values() for link in links.down)
    total = sum(map(len, trays.values()))
    return {link: count for link, count in sorted(down.items()) if len(trays) > 1 and 2 * count > total}
