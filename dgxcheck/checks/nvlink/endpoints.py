"""What both ends of each NVLink report, and the NVLink graph of the machine against that of its reference machine."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from dgxcheck.checks.engine.box import Box
from dgxcheck.checks.engine.finding import Judgement, Status, skip
from dgxcheck.facts.missing import Missing
from dgxcheck.facts.record import Record
from dgxcheck.topology.model import Device
from dgxcheck.topology.nvlinks import End, end
from dgxcheck.topology.reference import ALL, Reference
from dgxcheck.topology.relabel import Rows, fewest_differences

Pair = tuple[Device, Device]
MOST = 6
"""Pairs that may differ before the graph counts as that of another machine."""


class GraphComparison(Record):
    """NVLinks per pair that is joined in this machine or in its reference machine."""

    links: Mapping[Pair, int]
    expected: Mapping[Pair, int]


def ends_of(box: Box) -> dict[str, End] | Missing:
    """What each GPU reports of its links, by the GPU's bdf."""
    links = box.snapshot.nvlink
    if isinstance(links, Missing):
        return links
    bdfs = {gpu.bdf for gpu in box.topology.gpus if gpu.bdf is not None}
    return {bdf: end((link for link in links if link.bdf == bdf), bdfs, box.topology.functions) for bdf in sorted(bdfs)}


def linked(box: Box, ends: Mapping[str, End]) -> list[Device]:
    """GPUs with link positions, all of which answered."""
    listed = (gpu for gpu in box.topology.gpus if gpu.index is not None and gpu.bdf is not None)
    return [gpu for gpu in listed if ends[gpu.bdf or ""].positions and ends[gpu.bdf or ""].gap is None]


def links_up(view: End) -> int:
    """How many links a GPU has up, to GPUs, NVSwitches and others."""
    return view.gpus.total() + view.switches.total() + view.elsewhere.total()


def links_of_both(ends: Mapping[str, End], a: Device, b: Device) -> tuple[int, int]:
    """How many links ``a`` has up to ``b``, and ``b`` to ``a``."""
    return ends[a.bdf or ""].gpus[b.bdf or ""], ends[b.bdf or ""].gpus[a.bdf or ""]


def graph_of(box: Box) -> Reference | Judgement:
    """The graph that this machine is compared with, or why there is none."""
    if box.choice is None:
        return skip("no-reference", "no reference machine is known for this box")
    name = box.choice.profile.nvlink_graph
    graph = next((graph for graph in ALL if graph.name == name), None)
    return graph or skip("no-reference", f"the profile {box.choice.profile.name} has no NVLink graph")


def severity(box: Box) -> Status:
    """Warn only, where the reference machine was guessed from the GPUs alone."""
    return Status.WARN if box.choice is not None and box.choice.how == "gpus" else Status.FAIL


def compare_graph(box: Box, ends: Mapping[str, End], reference: Reference) -> GraphComparison | None:
    """Links per pair, of the end that reports more; without GPUs that have no link up; None if too many differ."""
    gpus = [gpu for gpu in linked(box, ends) if links_up(ends[gpu.bdf or ""])]
    rows = [[max(links_of_both(ends, a, b)) if a is not b else 0 for b in gpus] for a in gpus]
    wanted = reference.rows()
    labels = _labels(rows, wanted, _most_differences(box, len(gpus), reference))
    if labels is None:
        return None
    places = list(combinations(range(len(gpus)), 2))
    links = {(gpus[i], gpus[j]): rows[i][j] for i, j in places}
    expected = {(gpus[i], gpus[j]): wanted[labels[i]][labels[j]] for i, j in places}
    joined = [pair for pair in links if links[pair] or expected[pair]]
    return GraphComparison(
        links={pair: links[pair] for pair in joined}, expected={pair: expected[pair] for pair in joined}
    )


def _labels(rows: Rows, wanted: Rows, most: int) -> tuple[int, ...] | None:
    """Numbers of the reference's GPUs for those of this machine; its own where all pairs of the reference are alike."""
    if len({links for i, row in enumerate(wanted) for j, links in enumerate(row) if i != j}) > 1:
        return fewest_differences(rows, wanted, most)
    differing = sum(rows[i][j] != wanted[i][j] for i, j in combinations(range(min(len(rows), len(wanted))), 2))
    return tuple(range(len(rows))) if len(rows) <= len(wanted) and differing <= most else None


def _most_differences(box: Box, gpus: int, reference: Reference) -> int:
    """A machine guessed from its GPUs may be another: with fewer of them, fewer pairs may differ."""
    if box.choice is None or box.choice.how != "gpus":
        return MOST
    peers = max(sum(links > 0 for links in row) for row in reference.rows())
    return min(MOST, gpus - 1, peers - (reference.gpus - gpus))


def switched(ends: Mapping[str, End]) -> bool:
    """Do links run through NVSwitches?"""
    return any(view.switches for view in ends.values())
